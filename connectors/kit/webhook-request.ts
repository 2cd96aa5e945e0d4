import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Webhook of a bank, as it arrived. */
export interface WebhookRequest {
  headers: IncomingHttpHeaders;
  /** Exact bytes, which a signature covers. */
  body: Buffer;
  /** @throws WebhookRefused with 400 if the body is not JSON */
  json: () => unknown;
}

/** Refusal of a webhook; its message is the answer to the bank. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused';

  readonly status: 400 | 401 | 403;

  constructor(status: 400 | 401 | 403, message: string) {
    super(message);
    this.status = status;
  }
}

interface SignedBody {
  body: Buffer | string;
  secret: string;
  /** Received signature, in hex. */
  signature: string | string[] | undefined;
}

/**
 * Requires the hex HMAC-SHA256 of the body.
 * @throws WebhookRefused with 401
 */
export function assertSigned({ body, secret, signature }: SignedBody): void {
  const expected = createHmac('sha256', secret).update(body).digest();
  const received = Buffer.from(typeof signature === 'string' ? signature : '', 'hex');
  if (received.length === expected.length && timingSafeEqual(received, expected)) return;
  throw new WebhookRefused(401, 'The signature is not valid.');
}
