export type MagicTable<Behavior extends string = string> = Readonly<
  Record<number, { behaviour: Behavior; description: string }>
>;

/** Behavior of the bank or of a payer; `normal` for any other amount. */
export type BehaviorIn<Table extends MagicTable> =
  | 'normal'
  | Table[keyof Table & number]['behaviour'];

export function getBehavior<Behavior extends string>(
  table: MagicTable<Behavior>,
  amount: number,
): Behavior | 'normal' {
  return table[amount]?.behaviour ?? 'normal';
}

/**
 * Magic amounts of payments, in minor units of any currency: merchants test these cases before they
 * go live.
 */
export const MAGIC_AMOUNTS = {
  66601: {
    behaviour: 'slow_session',
    description: 'The bank opens its page after 8 seconds: the create responds `created`.',
  },
  66602: {
    behaviour: 'declined_at_open',
    description: 'The bank declines at once: the create responds `failed`.',
  },
  66603: {
    behaviour: 'never_settles',
    description: 'No settlement follows the approval: it stays `authorized`.',
  },
  66604: {
    behaviour: 'duplicate_out_of_order',
    description:
      'After the approval the bank reports `settled`, then `authorized`, then both again: `settled`, each event once.',
  },
  66605: {
    behaviour: 'fails_after_approval',
    description:
      'Three seconds after the approval the bank revokes it: `authorized`, then `failed`.',
  },
} as const satisfies MagicTable;

export const REFUND_MAGIC_AMOUNTS = {
  66611: {
    behaviour: 'refused',
    description: 'The bank refuses at once: `failed` with `refund_refused`.',
  },
  66612: {
    behaviour: 'fails_later',
    description: 'It fails after 3 seconds with `account_closed`.',
  },
  66613: {
    behaviour: 'silent',
    description: 'The bank reports nothing: it stays `processing`.',
  },
  66614: {
    behaviour: 'answer_lost',
    description: 'The bank’s answer gets lost: looked up, then as usual.',
  },
  66615: {
    behaviour: 'instruction_lost',
    description:
      'The instruction gets lost: looked up, sent again under the same ID, then as usual.',
  },
  66616: {
    behaviour: 'contradictory',
    description: 'The bank reports `settled` twice, then `failed`: `settled`, with one event.',
  },
} as const satisfies MagicTable;

export const PAYOUT_MAGIC_AMOUNTS = {
  66621: {
    behaviour: 'rejected',
    description: 'The bank rejects at once: `failed` with `payout_rejected`.',
  },
  66622: {
    behaviour: 'fails_later',
    description: 'Three seconds after it was sent, it fails with `scheme_rejected`.',
  },
  66623: {
    behaviour: 'silent',
    description: 'The bank reports nothing more after `sent`.',
  },
  66624: {
    behaviour: 'stays_submitted',
    description:
      'The bank queues it: it stays `submitted`, which the create responds after 5 seconds.',
  },
  66625: {
    behaviour: 'answer_lost',
    description: 'The bank’s answer gets lost: looked up, then as usual.',
  },
  66626: {
    behaviour: 'instruction_lost',
    description:
      'The instruction gets lost: looked up, sent again under the same ID, then as usual.',
  },
  66627: {
    behaviour: 'comes_back',
    description: '`completed` after 3 seconds, and 3 seconds later `returned` with `AC04`.',
  },
  66628: {
    behaviour: 'comes_straight_back',
    description: '`returned` 3 seconds after it was sent, never `completed`.',
  },
  66629: {
    behaviour: 'contradictory',
    description:
      'The bank reports `completed` twice, `failed`, then `returned` twice: `returned` (on `card_payout`, `completed`), each event once.',
  },
} as const satisfies MagicTable;
