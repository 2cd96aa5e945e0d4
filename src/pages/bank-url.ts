import type { PaymentDocument } from '../service/payment-pages';

const LENGTH_MAX = 2_048;

/**
 * Address of the bank's session, once there is one that a browser may be sent to: https, or http in
 * the sandbox. A connector's answer is stored as it came.
 * @see docs/connectors.md#instructions
 */
export function bankUrl({
  session_url: url,
  livemode,
}: Pick<PaymentDocument, 'session_url' | 'livemode'>): string | null {
  if (url === null || url.length > LENGTH_MAX || !URL.canParse(url)) return null;
  const { protocol } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && !livemode) ? url : null;
}
