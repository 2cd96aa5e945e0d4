/**
 * Magic amounts of payments: each makes the sandbox bank misbehave, in minor units of any currency.
 * Merchants can see these cases before going live, and would not charge them by accident.
 */
export const MAGIC_AMOUNTS = {
  66601: {
    behaviour: 'slow_session',
    description:
      'The bank takes 8 seconds to open its page. The payment is created with status `created`, ' +
      'and its `redirect_url` works meanwhile.',
  },
  66602: {
    behaviour: 'declined_at_open',
    description: 'The bank refuses the payment before the customer sees its page: `failed`.',
  },
  66603: {
    behaviour: 'never_settles',
    description: 'After the approval no settlement comes: the payment stays `authorized`.',
  },
  66604: {
    behaviour: 'duplicate_out_of_order',
    description:
      'After the approval `settled` comes first, `authorized` a second later, then both once ' +
      'more; also with autoplay off. The payment ends `settled`, each event is sent once.',
  },
  66605: {
    behaviour: 'fails_after_approval',
    description:
      'Three seconds after the approval the bank takes it back: `authorized`, then `failed`; ' +
      'also with autoplay off.',
  },
} as const satisfies MagicTable;

/** Magic amounts of refunds; the refund's amount decides, not the payment's. */
export const REFUND_MAGIC_AMOUNTS = {
  66611: {
    behaviour: 'refused',
    description: 'The bank refuses the refund at once: `failed`.',
  },
  66612: {
    behaviour: 'fails_later',
    description:
      'The bank accepts the refund; three seconds later it fails, as the customer’s account is ' +
      'closed; also with autoplay off.',
  },
  66613: {
    behaviour: 'silent',
    description:
      'The bank accepts the refund and says nothing more: it stays `processing`, and operators ' +
      'are told when it is overdue.',
  },
  66614: {
    behaviour: 'answer_lost',
    description:
      'The bank takes the refund, but its answer gets lost. It is looked up, and goes on as usual.',
  },
  66615: {
    behaviour: 'instruction_lost',
    description:
      'The instruction gets lost on its way to the bank. It is looked up, sent again under the ' +
      'same id, and goes on as usual.',
  },
  66616: {
    behaviour: 'contradictory',
    description:
      'After three seconds the bank says `settled`, a second later `settled` once more, then ' +
      '`failed`; also with autoplay off. The refund ends `settled`, its event is sent once.',
  },
} as const satisfies MagicTable;

/** Magic amounts of payouts. */
export const PAYOUT_MAGIC_AMOUNTS = {
  66621: {
    behaviour: 'rejected',
    description: 'The bank rejects the payout at once: `failed`.',
  },
  66622: {
    behaviour: 'fails_later',
    description:
      'The bank sends the payout; three seconds later it fails, as the scheme did not take it; ' +
      'also with autoplay off.',
  },
  66623: {
    behaviour: 'silent',
    description:
      'The bank sends the payout and says nothing more: it stays `sent`, and operators are told ' +
      'when it is overdue.',
  },
  66624: {
    behaviour: 'stays_submitted',
    description:
      'The bank queues the payout and says nothing more: it stays `submitted`, and operators are ' +
      'told when it is overdue.',
  },
  66625: {
    behaviour: 'answer_lost',
    description:
      'The bank takes the payout, but its answer gets lost. It is looked up, and goes on as usual.',
  },
  66626: {
    behaviour: 'instruction_lost',
    description:
      'The instruction gets lost on its way to the bank. It is looked up, sent again under the ' +
      'same id, and goes on as usual.',
  },
  66627: {
    behaviour: 'comes_back',
    description:
      'After three seconds the bank says `completed`, three seconds later the money comes back: ' +
      '`returned`; also with autoplay off.',
  },
  66628: {
    behaviour: 'comes_straight_back',
    description:
      'Three seconds after it was sent the money comes back: `returned`, never `completed`; also ' +
      'with autoplay off.',
  },
  66629: {
    behaviour: 'contradictory',
    description:
      'After three seconds the bank says `completed`, then second by second `completed` once ' +
      'more, `failed`, and twice `returned`; also with autoplay off. The payout ends `returned`, ' +
      'on rails without returns `completed`; each event is sent once.',
  },
} as const satisfies MagicTable;

type MagicTable = Record<number, { behaviour: string; description: string }>;

export type Behaviour = 'normal' | (typeof MAGIC_AMOUNTS)[keyof typeof MAGIC_AMOUNTS]['behaviour'];

export type RefundBehaviour =
  | 'normal'
  | (typeof REFUND_MAGIC_AMOUNTS)[keyof typeof REFUND_MAGIC_AMOUNTS]['behaviour'];

export type PayoutBehaviour =
  | 'normal'
  | (typeof PAYOUT_MAGIC_AMOUNTS)[keyof typeof PAYOUT_MAGIC_AMOUNTS]['behaviour'];

/** @param amount minor units of a payment */
export function behaviourOf(amount: number): Behaviour {
  return isIn(MAGIC_AMOUNTS, amount) ? MAGIC_AMOUNTS[amount].behaviour : 'normal';
}

/** @param amount minor units of a refund */
export function refundBehaviourOf(amount: number): RefundBehaviour {
  return isIn(REFUND_MAGIC_AMOUNTS, amount) ? REFUND_MAGIC_AMOUNTS[amount].behaviour : 'normal';
}

/** @param amount minor units of a payout */
export function payoutBehaviourOf(amount: number): PayoutBehaviour {
  return isIn(PAYOUT_MAGIC_AMOUNTS, amount) ? PAYOUT_MAGIC_AMOUNTS[amount].behaviour : 'normal';
}

function isIn<T extends MagicTable>(table: T, amount: PropertyKey): amount is keyof T {
  return Object.hasOwn(table, amount);
}
