import {
  isPaymentMethodId,
  methodRules,
  type PaymentMethodRules,
} from '../../src/domain/payment/catalog';

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
