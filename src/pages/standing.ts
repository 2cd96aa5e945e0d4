import type { PaymentStatus } from '../domain/payment';
import type { PaymentDocument } from '../store/payments';

type Facts = Pick<
  PaymentDocument,
  'status' | 'browser_hash' | 'expires_at' | 'success_url' | 'error_url'
>;

/**
 * What a browser may do on a payment's page.
 * - `open`: see it, continue to the bank, abandon it
 * - `outcome`: it is the browser that opened it, and the payment is past paying: it sees what happened
 * - `taken`: another browser opened it
 * - `expired`, `ended`: too late
 */
export type Standing = 'open' | 'outcome' | 'taken' | 'expired' | 'ended';

/**
 * Pure. Decided: the page opens once, is then bound to that browser, and expires with the payment.
 * @param browserHash SHA-256 of the asking browser's cookie; null when it has none
 * @see spec §2.1 redirect_url
 */
export function standingOf(payment: Facts, browserHash: string | null, now: Date): Standing {
  const { status, browser_hash } = payment;
  if (browser_hash !== null && browser_hash !== browserHash) return 'taken';
  const payable = status === 'created' || status === 'awaiting_customer';
  if (status === 'expired' || (payable && Date.parse(payment.expires_at) <= now.getTime())) {
    return 'expired';
  }
  if (payable) return 'open';
  return browser_hash === null ? 'ended' : 'outcome';
}

/** Where the shop wants the customer now; null while nothing is decided. @see spec §4.1 */
export function onwardUrl(payment: Facts): string | null {
  const onward: Record<PaymentStatus, string | null> = {
    created: null,
    awaiting_customer: null,
    authorized: payment.success_url,
    settled: payment.success_url,
    failed: payment.error_url,
    cancelled: payment.error_url,
    expired: payment.error_url,
  };
  return onward[payment.status];
}
