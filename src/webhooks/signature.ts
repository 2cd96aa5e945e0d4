import { createHmac, timingSafeEqual } from 'node:crypto';

/** @see docs/webhooks.md#verify-the-signature */
const SIGNATURE_TOLERANCE_SECONDS = 300;

export interface SignedDelivery {
  header: string | undefined;
  /** Raw bytes, not a re-serialized body. */
  body: string | Buffer;
  secret: string;
  /** Unix time in seconds. */
  now: number;
  toleranceSeconds?: number;
}

/**
 * Builds `t=<unix seconds>,v1=<hex HMAC-SHA256>`. The key is the whole text of the secret,
 * including `whsec_`.
 * @see docs/webhooks.md#verify-the-signature
 */
export function signPayload(secret: string, body: string | Buffer, atSeconds: number): string {
  return `t=${atSeconds},v1=${hmac(secret, body, String(atSeconds)).toString('hex')}`;
}

const HEADER = /^(?:t=(\d{1,12}),v1=([0-9a-f]{64})|v1=([0-9a-f]{64}),t=(\d{1,12}))$/;

/** Refuses a header with anything but one `t` and one `v1`. */
export function verifySignature(delivery: SignedDelivery): boolean {
  const { header, body, secret, now } = delivery;
  const tolerance = delivery.toleranceSeconds ?? SIGNATURE_TOLERANCE_SECONDS;
  const match = HEADER.exec(header ?? '');
  if (match === null) return false;
  const [t = '', v1 = ''] = [match[1] ?? match[4], match[2] ?? match[3]];
  const isGenuine = timingSafeEqual(hmac(secret, body, t), Buffer.from(v1, 'hex'));
  return isGenuine && Math.abs(now - Number(t)) <= tolerance;
}

function hmac(secret: string, body: string | Buffer, t: string): Buffer {
  return createHmac('sha256', secret).update(`${t}.`).update(body).digest();
}
