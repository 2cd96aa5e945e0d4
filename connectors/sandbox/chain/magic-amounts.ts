import type { MagicTable } from '../magic-amounts';

/**
 * Magic amounts of crypto payments, in minor units of any currency: the sandbox's payer acts two
 * seconds after the create, also with autoplay off.
 */
export const CRYPTO_MAGIC_AMOUNTS = {
  66631: {
    behaviour: 'pays',
    description: 'The payer sends the exact amount: `received` after three confirmations.',
  },
  66632: {
    behaviour: 'pays_half',
    description: 'The payer sends half and nothing more: `underpaid`.',
  },
  66633: {
    behaviour: 'pays_in_two',
    description: 'The payer sends half, and 6 seconds later the rest: `underpaid`, `received`.',
  },
  66634: {
    behaviour: 'pays_double',
    description: 'The payer sends twice as much: `received`, and all of it is credited.',
  },
  66635: {
    behaviour: 'listed_source',
    description: 'The source fails the screening: `held`.',
  },
  66636: {
    behaviour: 'reorged_early',
    description:
      'The deposit is reorged before it is confirmed, and mined in another block: `received`, once.',
  },
  66637: {
    behaviour: 'reorged_late',
    description:
      'The deposit is reorged 3 seconds after it was confirmed: `received`, and an operator is alerted.',
  },
  66638: {
    behaviour: 'never_confirms',
    description:
      'The deposit is never confirmed: it stays `pending`, and the payment `awaiting_deposit`, also after its window.',
  },
  66639: {
    behaviour: 'declined',
    description: 'There is no rate: the create is 422 `asset_not_available`.',
  },
} as const satisfies MagicTable;

/** Magic amounts of settlements, in the smallest unit of any asset. */
export const SETTLEMENT_MAGIC_AMOUNTS = {
  66641: {
    behaviour: 'refused',
    description: 'The chain refuses at once: `failed` with `settlement_refused`.',
  },
  66642: {
    behaviour: 'fails_later',
    description: 'Three seconds after it was sent, it fails with `transaction_dropped`.',
  },
  66643: {
    behaviour: 'silent',
    description: 'The chain reports nothing more after `sent`.',
  },
  66644: {
    behaviour: 'answer_lost',
    description: 'The answer gets lost: looked up, then as usual.',
  },
  66645: {
    behaviour: 'instruction_lost',
    description:
      'The instruction gets lost: looked up, sent again under the same ID, then as usual.',
  },
  66646: {
    behaviour: 'waits',
    description: 'It waits 3 seconds before it is sent: `pending`, `sent`.',
  },
} as const satisfies MagicTable;
