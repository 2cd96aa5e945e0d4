import type { RuleViolation } from '../errors';
import { formatMoney } from '../money/money';
import { isPaymentMethodId, methodRules } from '../payment/catalog';
import type { PaymentStatus } from '../payment/payment';

export interface RefundablePayment {
  status: PaymentStatus;
  method: string;
  currency: string;
  /** Minor units. */
  amount: number;
  /** Minor units of processing and settled refunds. */
  refunded: number;
  settled_at: string | null;
  /** Minor units, where they differ from `amount`. */
  settled_amount?: number | null;
  /** A bank's report of a chargeback waits for an operator. */
  disputed_at?: string | null;
  /** Minor units that disputes took. */
  disputed?: number;
  /** Number of disputes that are not closed. */
  disputes_open?: number;
}

const DAY_MS = 86_400_000;

/** Minor units of all refunds that a payment can have. */
export function refundableAmount({
  amount,
  settled_amount,
  disputed = 0,
}: Pick<RefundablePayment, 'amount' | 'settled_amount' | 'disputed'>): number {
  return Math.min(amount, settled_amount ?? amount) - disputed;
}

/**
 * The window includes its last millisecond; its days are in src/domain/payment/catalog.ts.
 * @see docs/api.md#refunds
 * @param amount minor units; null for the rest
 */
export function refundFault(
  payment: RefundablePayment,
  amount: number | null,
  at: Date,
): RuleViolation | undefined {
  const { method, status, settled_at, currency } = payment;
  const rules = isPaymentMethodId(method) ? methodRules(method) : undefined;
  if (rules?.refunds.kind !== 'standard') {
    const name = rules?.display_name ?? method;
    const instead = rules?.refunds.kind === 'payout_only' ? ' Send the money as a payout.' : '';
    return { code: 'refund_not_supported', message: `${name} has no refunds.${instead}` };
  }
  if (status !== 'settled' || settled_at === null) {
    const message = `The payment is ${status}; only a settled payment can be refunded.`;
    const paid = status === 'authorized' || status === 'settled';
    const open = status === 'created' || status === 'awaiting_customer';
    const advice = open ? ' Cancel it instead.' : paid ? ' Wait until it settles.' : '';
    return { code: 'payment_not_settled', message: message + advice };
  }
  const remaining = refundableAmount(payment) - payment.refunded;
  const { disputed = 0, disputes_open = 0 } = payment;
  const isLost = remaining <= 0 && disputed > 0;
  if (payment.disputed_at || disputes_open > 0 || isLost) {
    const message = 'The payment is disputed, so there is nothing left to refund.';
    return { code: 'payment_disputed', message };
  }
  const days = rules.refunds.withinDays;
  if (at.getTime() > Date.parse(settled_at) + days * DAY_MS) {
    const message = `${rules.display_name} can be refunded for ${days} days after settlement.`;
    return { code: 'refund_window_expired', message };
  }
  if (remaining === 0 || (amount ?? 0) > remaining) {
    const message = `${formatMoney(remaining, currency)} of the payment can still be refunded.`;
    return { code: 'refund_amount_exceeds_balance', message };
  }
  return undefined;
}
