import type { MagicTable } from '../magic-amounts';

/**
 * Minor units of any currency: the payer acts two seconds after the create, also with autoplay off.
 */
export const CRYPTO_MAGIC_AMOUNTS = {
  66631: {
    behaviour: 'pays',
    description: 'Exact amount: `received`.',
  },
  66632: {
    behaviour: 'pays_half',
    description: 'Half: `underpaid`.',
  },
  66633: {
    behaviour: 'pays_in_two',
    description: 'Half, the rest 6 seconds later: `underpaid`, `received`.',
  },
  66634: {
    behaviour: 'pays_double',
    description: 'Twice as much: `received`, all of it credited.',
  },
  66635: {
    behaviour: 'listed_source',
    description: 'It fails the screening: `held`.',
  },
  66636: {
    behaviour: 'reorged_early',
    description: 'Reorged before it is confirmed, and mined again: `received`, once.',
  },
  66637: {
    behaviour: 'reorged_late',
    description: 'Reorged 3 seconds after it was confirmed: `received`.',
  },
  66638: {
    behaviour: 'never_confirms',
    description: 'Never confirmed: `awaiting_deposit`, also after its window.',
  },
  66639: {
    behaviour: 'declined',
    description: 'No rate: the create is 422 `asset_not_available`.',
  },
} as const satisfies MagicTable;

/** Smallest unit of any asset. */
export const SETTLEMENT_MAGIC_AMOUNTS = {
  66641: {
    behaviour: 'refused',
    description: '`failed` at once with `settlement_refused`.',
  },
  66642: {
    behaviour: 'fails_later',
    description: '`failed`, 3 seconds after `sent`, with `transaction_dropped`.',
  },
  66643: {
    behaviour: 'silent',
    description: 'It stays `sent`.',
  },
  66644: {
    behaviour: 'answer_lost',
    description: 'The answer is lost, then as usual.',
  },
  66645: {
    behaviour: 'instruction_lost',
    description: 'The instruction is lost, then sent again.',
  },
  66646: {
    behaviour: 'waits',
    description: '`sent` after 3 seconds in `pending`.',
  },
} as const satisfies MagicTable;
