/** Amounts at which the sandbox misbehaves, each with its description for merchants. */
export type MagicTable<Behavior extends string = string> = Readonly<
  Record<number, { behaviour: Behavior; description: string }>
>;

/** Behavior at an amount; `otherwise` if the table does not have it. */
export function lookUpBehavior<Behavior extends string, Usual extends string>(
  table: MagicTable<Behavior>,
  amount: number,
  otherwise: Usual,
): Behavior | Usual {
  return table[amount]?.behaviour ?? otherwise;
}

/**
 * Magic amounts of payments, in minor units of any currency. Merchants can test these cases before
 * they go live, and would not charge the amounts by accident.
 */
export const MAGIC_AMOUNTS = {
  66601: {
    behaviour: 'slow_session',
    description:
      'The bank opens its page after 8 seconds: the create responds `created`, and ' +
      '`redirect_url` works meanwhile.',
  },
  66602: {
    behaviour: 'declined_at_open',
    description: 'The bank declines before the customer sees a page: the create responds `failed`.',
  },
  66603: {
    behaviour: 'never_settles',
    description: 'No settlement follows the approval: the payment stays `authorized`.',
  },
  66604: {
    behaviour: 'duplicate_out_of_order',
    description:
      'After the approval the bank reports `settled`, then `authorized`, then both again; also ' +
      'with autoplay off. The payment ends `settled`, and each event is sent once.',
  },
  66605: {
    behaviour: 'fails_after_approval',
    description:
      'Three seconds after the approval the bank revokes it: `authorized`, then `failed`; ' +
      'also with autoplay off.',
  },
} as const satisfies MagicTable;

/** Magic amounts of refunds; the payment's amount has no effect. */
export const REFUND_MAGIC_AMOUNTS = {
  66611: {
    behaviour: 'refused',
    description: 'The bank refuses the refund at once: `failed` with the code `refund_refused`.',
  },
  66612: {
    behaviour: 'fails_later',
    description:
      'Three seconds after the bank accepted it, the refund fails with the code ' +
      '`account_closed`; also with autoplay off.',
  },
  66613: {
    behaviour: 'silent',
    description: 'The bank accepts the refund and reports nothing more: it stays `processing`.',
  },
  66614: {
    behaviour: 'answer_lost',
    description: 'The bank’s answer gets lost. The refund is looked up, and goes on as usual.',
  },
  66615: {
    behaviour: 'instruction_lost',
    description:
      'The instruction gets lost. The refund is looked up, sent again under the same id, and ' +
      'goes on as usual.',
  },
  66616: {
    behaviour: 'contradictory',
    description:
      'The bank reports `settled` twice and then `failed`; also with autoplay off. The refund ' +
      'ends `settled`, and its event is sent once.',
  },
} as const satisfies MagicTable;

export const PAYOUT_MAGIC_AMOUNTS = {
  66621: {
    behaviour: 'rejected',
    description: 'The bank rejects the payout at once: `failed` with the code `payout_rejected`.',
  },
  66622: {
    behaviour: 'fails_later',
    description:
      'Three seconds after it was sent, the payout fails with the code `scheme_rejected`; also ' +
      'with autoplay off.',
  },
  66623: {
    behaviour: 'silent',
    description: 'The bank sends the payout and reports nothing more: it stays `sent`.',
  },
  66624: {
    behaviour: 'stays_submitted',
    description:
      'The bank queues the payout and reports nothing more: it stays `submitted`, which the ' +
      'create responds after 5 seconds.',
  },
  66625: {
    behaviour: 'answer_lost',
    description: 'The bank’s answer gets lost. The payout is looked up, and goes on as usual.',
  },
  66626: {
    behaviour: 'instruction_lost',
    description:
      'The instruction gets lost. The payout is looked up, sent again under the same id, and ' +
      'goes on as usual.',
  },
  66627: {
    behaviour: 'comes_back',
    description:
      'The payout is `completed` after 3 seconds and returned 3 seconds later: `returned` ' +
      'with the code `AC04`; also with autoplay off.',
  },
  66628: {
    behaviour: 'comes_straight_back',
    description:
      'Three seconds after it was sent, the payout is `returned`, never `completed`; ' +
      'also with autoplay off.',
  },
  66629: {
    behaviour: 'contradictory',
    description:
      'The bank reports `completed` twice, then `failed`, then `returned` twice; also with ' +
      'autoplay off. The payout ends `returned` (on `card_payout`, `completed`), and each ' +
      'event is sent once.',
  },
} as const satisfies MagicTable;

export type Behavior = 'normal' | (typeof MAGIC_AMOUNTS)[keyof typeof MAGIC_AMOUNTS]['behaviour'];

export type RefundBehavior =
  | 'normal'
  | (typeof REFUND_MAGIC_AMOUNTS)[keyof typeof REFUND_MAGIC_AMOUNTS]['behaviour'];

export type PayoutBehavior =
  | 'normal'
  | (typeof PAYOUT_MAGIC_AMOUNTS)[keyof typeof PAYOUT_MAGIC_AMOUNTS]['behaviour'];

export function getBehavior(amount: number): Behavior {
  return lookUpBehavior(MAGIC_AMOUNTS, amount, 'normal');
}

export function getRefundBehavior(amount: number): RefundBehavior {
  return lookUpBehavior(REFUND_MAGIC_AMOUNTS, amount, 'normal');
}

export function getPayoutBehavior(amount: number): PayoutBehavior {
  return lookUpBehavior(PAYOUT_MAGIC_AMOUNTS, amount, 'normal');
}
