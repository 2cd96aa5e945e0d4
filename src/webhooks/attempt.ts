import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  type DeliveredEvent,
  type EndpointDeliveryInput,
  getDeliveryId,
} from '../domain/events/delivery';
import type { DeliveryAttempt } from '../store/deliveries';
import type { PostWebhook } from './post';
import { isAcknowledged, type PostResult } from './post-result';

/** @see docs/webhooks.md#verify-the-signature */
const SIGNATURE_TOLERANCE_SECONDS = 300;

interface SignedDelivery {
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

/** @see docs/webhooks.md#answer-and-retries */
const ATTEMPT_TIMEOUT_MS = 10_000;
const USER_AGENT = 'durable-payments-webhooks/1';

interface Attempt {
  event: DeliveredEvent;
  url: string;
  secret: string;
  /** Unix time in ms. */
  atMs: number;
  allowPrivate: boolean;
}

export function postEvent(
  post: PostWebhook,
  { event, url, secret, atMs, allowPrivate }: Attempt,
): Promise<PostResult> {
  return post({
    url,
    headers: {
      'Content-Type': 'application/json',
      'Service-Signature': signPayload(secret, event.body, Math.floor(atMs / 1_000)),
      'Service-Event-Type': event.type,
      'User-Agent': USER_AGENT,
    },
    body: event.body,
    timeoutMs: ATTEMPT_TIMEOUT_MS,
    allowPrivate,
    livemode: event.livemode,
  });
}

interface AttemptResult {
  /** 1 to 12. */
  attempt: number;
  url: string;
  /** Account time. */
  atMs: number;
  firstAt?: string | undefined;
  result: PostResult;
  /** Null: no attempt follows. */
  nextAtMs: number | null;
}

export function toRow(
  { event_id, endpoint_id, run }: Pick<EndpointDeliveryInput, 'event_id' | 'endpoint_id' | 'run'>,
  { attempt, url, atMs, firstAt, result, nextAtMs }: AttemptResult,
): DeliveryAttempt {
  const isResponse = result.outcome === 'response';
  return {
    event_id,
    endpoint_id,
    run,
    attempt,
    at: new Date(atMs).toISOString(),
    ...(firstAt === undefined ? {} : { first_at: firstAt }),
    url,
    status_code: isResponse ? result.status : null,
    error: isResponse ? (result.note ?? null) : result.message,
    duration_ms: result.durationMs,
    response_excerpt: isResponse ? result.excerpt : '',
    outcome: isAcknowledged(result) ? 'delivered' : 'failed',
    next_attempt_at: nextAtMs === null ? null : new Date(nextAtMs).toISOString(),
  };
}

export function matchesDelivery(
  value: unknown,
  input: Pick<EndpointDeliveryInput, 'event_id' | 'endpoint_id' | 'run'>,
): value is DeliveryAttempt {
  const row = Object(value);
  const isSame = getDeliveryId(row) === getDeliveryId(input) && row.run === input.run;
  return isSame && typeof row.attempt === 'number';
}

/** Hides the receiver's response. */
export function describeRow({ url, status_code, error }: DeliveryAttempt): string {
  const { host } = new URL(url);
  return status_code === null
    ? `${host}: ${error ?? 'no answer'}`
    : `HTTP ${status_code} from ${host}`;
}
