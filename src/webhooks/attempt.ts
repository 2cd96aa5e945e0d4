import {
  type DeliveredEvent,
  type EndpointDeliveryInput,
  getDeliveryId,
} from '../domain/events/delivery';
import type { DeliveryAttempt } from '../store/deliveries';
import type { PostWebhook } from './post';
import { isAcknowledged, type PostResult } from './post-result';
import { signPayload } from './signature';

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
