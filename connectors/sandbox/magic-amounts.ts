import {
  isPaymentMethodId,
  methodRules,
  type PaymentMethodRules,
} from '../../src/domain/payment/catalog';

export type MagicTable<Behavior extends string = string> = Readonly<
  Record<number, { behaviour: Behavior; description: string }>
>;

export type BehaviorIn<Table extends MagicTable> =
  | 'normal'
  | Table[keyof Table & number]['behaviour'];

export function getBehavior<Behavior extends string>(
  table: MagicTable<Behavior>,
  amount: number,
): Behavior | 'normal' {
  return table[amount]?.behaviour ?? 'normal';
}

/** Minor units of any currency. */
export const MAGIC_AMOUNTS = {
  66601: {
    behaviour: 'slow_session',
    description: 'The bank needs 8 seconds: the create responds `created`.',
  },
  66602: {
    behaviour: 'declined_at_open',
    description: 'The create responds `failed`.',
  },
  66603: {
    behaviour: 'never_settles',
    description: 'It stays `authorized`.',
  },
  66604: {
    behaviour: 'duplicate_out_of_order',
    description: 'Reported twice and out of order: `settled`, each event once.',
  },
  66605: {
    behaviour: 'fails_after_approval',
    description: '`failed`, 3 seconds after `authorized`.',
  },
} as const satisfies MagicTable;

export const REFUND_MAGIC_AMOUNTS = {
  66611: {
    behaviour: 'refused',
    description: '`failed` at once with `refund_refused`.',
  },
  66612: {
    behaviour: 'fails_later',
    description: '`failed` after 3 seconds with `account_closed`.',
  },
  66613: {
    behaviour: 'silent',
    description: 'It stays `processing`.',
  },
  66614: {
    behaviour: 'answer_lost',
    description: 'The answer is lost, then as usual.',
  },
  66615: {
    behaviour: 'instruction_lost',
    description: 'The instruction is lost, then sent again.',
  },
  66616: {
    behaviour: 'contradictory',
    description: 'Reported `settled` twice, then `failed`: `settled`, with one event.',
  },
} as const satisfies MagicTable;

export const PAYOUT_MAGIC_AMOUNTS = {
  66621: {
    behaviour: 'rejected',
    description: '`failed` at once with `payout_rejected`.',
  },
  66622: {
    behaviour: 'fails_later',
    description: '`failed`, 3 seconds after `sent`, with `scheme_rejected`.',
  },
  66623: {
    behaviour: 'silent',
    description: 'It stays `sent`.',
  },
  66624: {
    behaviour: 'stays_submitted',
    description: 'It stays `submitted`.',
  },
  66625: {
    behaviour: 'answer_lost',
    description: 'The answer is lost, then as usual.',
  },
  66626: {
    behaviour: 'instruction_lost',
    description: 'The instruction is lost, then sent again.',
  },
  66627: {
    behaviour: 'comes_back',
    description: '`returned` with `AC04`, 3 seconds after `completed`.',
  },
  66628: {
    behaviour: 'comes_straight_back',
    description: '`returned`, 3 seconds after `sent`.',
  },
  66629: {
    behaviour: 'contradictory',
    description:
      'Reported `completed` twice, `failed`, `returned` twice: `completed`, `returned`, each event once.',
  },
} as const satisfies MagicTable;

export type PageKind = PaymentMethodRules['page'];

export const DECLINE_REASONS = {
  bank_selector: {
    insufficient_funds: 'Insufficient funds.',
    limit_exceeded: 'The daily limit of the account is exceeded.',
    login_failed: 'The customer could not log in at the bank.',
  },
  wallet: {
    refused_on_phone: 'The customer refused the payment on the phone.',
    insufficient_funds: 'Insufficient funds.',
    no_answer: 'The customer did not answer on the phone in time.',
  },
  card: {
    insufficient_funds: 'Insufficient funds.',
    card_blocked: 'The card is blocked.',
    challenge_failed: 'The one-time code was wrong three times.',
  },
  cash_reference: {
    reference_refused: 'The cash machine refused the reference.',
    insufficient_funds: 'Insufficient funds.',
  },
  voucher: {
    voucher_used: 'The voucher is used up.',
    voucher_blocked: 'The voucher is blocked.',
    voucher_expired: 'The voucher has expired.',
  },
} as const satisfies Record<PageKind, Record<string, string>>;

export const DECLINED = 'declined';

export function getPageKind(method: string): PageKind {
  return isPaymentMethodId(method) ? methodRules(method).page : 'bank_selector';
}

export function declineReason(method: string, choice: string): string {
  const reasons: [string, string][] = Object.entries(DECLINE_REASONS[getPageKind(method)]);
  const reason = reasons.find(([key]) => key === choice) ?? reasons[0];
  return reason?.[1] ?? 'Declined.';
}
