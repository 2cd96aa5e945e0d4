import type { EventType } from './event';

/** Never personal: Temporal stores it. */
export interface DeliveredEvent {
  account_id: string;
  livemode: boolean;
  type: EventType;
  /** Posted by every attempt, unchanged. */
  body: string;
}

interface EventInput {
  event_id: string;
  request_id: string;
  /** A test event has one attempt. */
  attempts_max?: 1;
  event: DeliveredEvent;
}

/** Argument of the update `redeliver`, too. */
export interface DeliveryTarget {
  endpoint_id: string;
  /** 0, then one for each redelivery. */
  run: number;
  /** An earlier workflow of this run was lost: its attempts count. */
  resume?: true;
}

export interface WebhookDeliveryInput extends EventInput {
  endpoints: DeliveryTarget[];
}

export interface EndpointDeliveryInput extends EventInput, DeliveryTarget {}

/** Names an activity of the event's workflow, too: its ID is the endpoint's. */
export type DeliveryKey = Pick<EndpointDeliveryInput, 'event_id' | 'endpoint_id'>;

export const REDELIVER = 'redeliver';

export const WEBHOOK_EXHAUSTED = 'WebhookExhausted';

export function getDeliveryId({ event_id, endpoint_id }: DeliveryKey): string {
  return `${event_id}:${endpoint_id}`;
}

/**
 * Due times, ms after the first attempt started; the workflow's retry policy has the same waits.
 * @see docs/decisions.md#events
 */
const OFFSETS_MS = [
  0, 42_000, 126_000, 294_000, 630_000, 1_302_000, 2_646_000, 5_334_000, 10_710_000, 21_462_000,
  42_966_000, 85_974_000,
] as const;

export const ATTEMPTS_MAX = OFFSETS_MS.length;
export const FIRST_WAIT_MS = OFFSETS_MS[1];

/** Spreads attempts that failed together. */
const JITTER_SHARE = 1 / 20;
export const JITTER_MAX_MS = 60_000;
const DELAY_MIN_MS = 1_000;

export function attemptOffsetMs(attempt: number): number {
  const offset = OFFSETS_MS[attempt - 1];
  if (offset === undefined) {
    throw new RangeError(`Attempt ${attempt} is not one of 1 to ${ATTEMPTS_MAX}.`);
  }
  return offset;
}

interface FailedAttempt {
  /** 1 to 11. */
  attempt: number;
  firstAtMs: number;
  nowMs: number;
  retryAfterMs?: number | undefined;
  jitter: number;
}

/**
 * Computes the wait in ms, up to the next offset, so slow responses don't add up. `Retry-After`
 * delays it by at most an even share of the time left, so all attempts fit into 24 h. A late
 * delivery catches up at half the usual waits.
 */
export function nextAttemptDelayMs(failedAttempt: FailedAttempt): number {
  const { attempt, firstAtMs, nowMs, retryAfterMs = 0, jitter } = failedAttempt;
  const dueAtMs = firstAtMs + attemptOffsetMs(attempt + 1);
  const waitMs = attemptOffsetMs(attempt + 1) - attemptOffsetMs(attempt);
  const jitterMs = Math.min(waitMs * JITTER_SHARE, JITTER_MAX_MS) * jitter;
  const leftMs = firstAtMs + attemptOffsetMs(ATTEMPTS_MAX) - nowMs;
  const shareMs = leftMs / (ATTEMPTS_MAX - attempt);
  const scheduledMs = dueAtMs + jitterMs - nowMs;
  const catchUpMs = Math.min(waitMs / 2, shareMs);
  const retryAfterCappedMs = Math.min(retryAfterMs, shareMs);
  return Math.round(Math.max(scheduledMs, catchUpMs, retryAfterCappedMs, DELAY_MIN_MS));
}
