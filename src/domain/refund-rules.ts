import { isPaymentMethodId, methodRules } from './catalogue';
import type { RuleViolation } from './lifecycle';
import { formatMoney } from './money';
import type { PaymentStatus } from './payment';

/** Facts about a payment that decide whether it can be refunded. */
export interface RefundablePayment {
  status: PaymentStatus;
  method: string;
  currency: string;
  /** Minor units. */
  amount: number;
  /** Minor units of its refunds, processing and settled. */
  refunded: number;
  settled_at: string | null;
  /** Minor units that came, where that is not what was asked. */
  settled_amount?: number | null;
  /** When the bank took the money back, or said so. */
  disputed_at?: string | null;
}

const DAY_MS = 86_400_000;

/** Minor units that refunds may add up to: never more than was asked for, nor than came. */
export function refundableAmount({
  amount,
  settled_amount,
}: Pick<RefundablePayment, 'amount' | 'settled_amount'>): number {
  return Math.min(amount, settled_amount ?? amount);
}

/**
 * Finds why the payment can't be refunded; undefined when it can.
 * The window counts from `settled_at`, its last millisecond included.
 * @param amount minor units; null for all that remains
 * @param at time when the refund was asked for
 * @see docs/api.md#refunds
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
  if (payment.disputed_at) {
    const message = 'The bank takes this payment back, so there is nothing left to refund.';
    return { code: 'payment_disputed', message };
  }
  const days = rules.refunds.withinDays;
  if (at.getTime() > Date.parse(settled_at) + days * DAY_MS) {
    const message = `${rules.display_name} can be refunded for ${days} days after settlement.`;
    return { code: 'refund_window_expired', message };
  }
  const remaining = refundableAmount(payment) - payment.refunded;
  if (remaining === 0 || (amount ?? 0) > remaining) {
    const message = `${formatMoney(remaining, currency)} of the payment can still be refunded.`;
    return { code: 'refund_amount_exceeds_balance', message };
  }
  return undefined;
}
