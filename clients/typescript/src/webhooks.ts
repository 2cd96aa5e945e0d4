import { createHmac, timingSafeEqual } from 'node:crypto';
import { SignatureError } from './errors';
import type { WebhookEvent } from './schema';

const TOLERANCE_SECONDS = 300;
const SIGNATURE = /^(?:t=(\d{1,12}),v1=([0-9a-f]{64})|v1=([0-9a-f]{64}),t=(\d{1,12}))$/;

export interface ReceivedWebhook {
  /** Body exactly as received: parsed and serialized again, it has another signature. */
  body: string | Uint8Array;
  /** Header `Service-Signature`. */
  signature: string | null | undefined;
  /** Signing secret of the endpoint; while it is rolled, the new one and the old one. */
  secret: string | readonly string[];
  /** Age, in either direction, from which a delivery is refused. @default 300 */
  toleranceSeconds?: number;
  /** @default now */
  now?: Date;
}

/**
 * Verifies a webhook and parses it. Store the `id` and act on it only once: an event can arrive twice.
 * @throws SignatureError unless it is genuine and recent
 */
export function verifyWebhook(webhook: ReceivedWebhook): WebhookEvent {
  const { body, signature, secret, toleranceSeconds = TOLERANCE_SECONDS } = webhook;
  const { now = new Date() } = webhook;
  const parts = SIGNATURE.exec(signature ?? '');
  const t = parts?.[1] ?? parts?.[4];
  const v1 = parts?.[2] ?? parts?.[3];
  if (t === undefined || v1 === undefined) {
    throw new SignatureError('Service-Signature is missing or is not t=SECONDS,v1=HEX.');
  }
  const secrets = [secret].flat().filter((each) => each !== '');
  if (secrets.length === 0) throw new SignatureError('No signing secret is set.');
  const received = Buffer.from(v1, 'hex');
  const isGenuine = secrets
    .map((each) => timingSafeEqual(hmac(each, t, body), received))
    .includes(true);
  if (!isGenuine) throw new SignatureError('The signature does not verify with any secret.');
  if (!(Math.abs(now.getTime() / 1_000 - Number(t)) <= toleranceSeconds)) {
    throw new SignatureError(`The signature is not from the last ${toleranceSeconds} seconds.`);
  }
  return JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString('utf8'));
}

/** Builds a `Service-Signature`, for tests of your receiver. */
export function signWebhook({
  body,
  secret,
  now = new Date(),
}: Pick<ReceivedWebhook, 'body' | 'now'> & { secret: string }): string {
  const t = String(Math.floor(now.getTime() / 1_000));
  return `t=${t},v1=${hmac(secret, t, body).toString('hex')}`;
}

function hmac(secret: string, t: string, body: string | Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${t}.`).update(body).digest();
}
