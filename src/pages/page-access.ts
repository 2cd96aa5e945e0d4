import type { PaymentStatus } from '../domain/payment/payment';
import type { PaymentDocument } from '../service/money/payment-pages';

type Facts = Pick<
  PaymentDocument,
  'status' | 'browser_hash' | 'expires_at' | 'success_url' | 'error_url'
>;

/**
 * - `outcome`: this browser opened the payment, which is no longer payable
 * - `taken`: another browser opened it
 */
export type PageAccess = 'open' | 'outcome' | 'taken' | 'expired' | 'ended';

/**
 * @param browserHash SHA-256 of the browser's cookie
 * @see docs/api.md#send-the-customer-to-redirect_url
 */
export function getPageAccess(payment: Facts, browserHash: string | null, now: Date): PageAccess {
  const { status, browser_hash } = payment;
  if (browser_hash !== null && browser_hash !== browserHash) return 'taken';
  const payable = status === 'created' || status === 'awaiting_customer';
  if (status === 'expired' || (payable && Date.parse(payment.expires_at) <= now.getTime())) {
    return 'expired';
  }
  if (payable) return 'open';
  return browser_hash === null ? 'ended' : 'outcome';
}

/**
 * @returns null while nothing is decided
 * @see docs/api.md#send-the-customer-to-redirect_url
 */
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

const URL_LENGTH_MAX = 2_048;

/**
 * @returns null unless a browser may open it: https, or http in the sandbox
 * @see docs/connectors.md#instructions
 */
export function bankUrl({
  session_url: url,
  livemode,
}: Pick<PaymentDocument, 'session_url' | 'livemode'>): string | null {
  if (url === null || url.length > URL_LENGTH_MAX || !URL.canParse(url)) return null;
  const { protocol } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && !livemode) ? url : null;
}
