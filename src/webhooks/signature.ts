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

/** Refuses a header with anything but one `t` and one `v1`. */
export function verifySignature(delivery: SignedDelivery): boolean {
  const { header, body, secret, now } = delivery;
  const tolerance = delivery.toleranceSeconds ?? SIGNATURE_TOLERANCE_SECONDS;
  const parts = parseHeader(header ?? '');
  if (parts === undefined) return false;
  const isGenuine = timingSafeEqual(hmac(secret, body, parts.t), Buffer.from(parts.v1, 'hex'));
  return isGenuine && Math.abs(now - Number(parts.t)) <= tolerance;
}

function parseHeader(header: string): { t: string; v1: string } | undefined {
  const match = /^(?:t=(\d{1,12}),v1=([0-9a-f]{64})|v1=([0-9a-f]{64}),t=(\d{1,12}))$/.exec(header);
  if (match === null) return undefined;
  const t = match[1] ?? match[4];
  const v1 = match[2] ?? match[3];
  return t === undefined || v1 === undefined ? undefined : { t, v1 };
}

function hmac(secret: string, body: string | Buffer, t: string): Buffer {
  return createHmac('sha256', secret).update(`${t}.`).update(body).digest();
}
