import type { PaymentDocument } from '../service/payment-pages';

const LENGTH_MAX = 2_048;

/**
 * Returns the bank's session URL if a browser may open it: https, or http in the sandbox. The
 * stored answer of the connector is not verified.
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
