import { ApplicationFailure, activityInfo, heartbeat } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { MongoError } from 'mongodb';
import {
  type DeliveryStatus,
  WEBHOOK_EXHAUSTED,
  type WebhookDeliveryInput,
} from '../src/domain/event';
import { ATTEMPTS_MAX, nextAttemptDelayMs } from '../src/domain/webhook-schedule';
import type { Sealer } from '../src/keys/seal';
import type { DeliveryDocument, DeliveryStore } from '../src/store/deliveries';
import { type EndpointStore, endpointOwner, signingSecret } from '../src/store/endpoints';
import type { EventStore } from '../src/store/events';
import type { PostWebhook } from '../src/webhooks/post';
import type { PostResult } from '../src/webhooks/post-result';
import { patiently } from './patiently';
import {
  describeResult,
  describeRow,
  isAcknowledged,
  isRowOf,
  postEvent,
  rowOf,
} from './webhook-attempt';

/** Pause before the next try after an outage of our own; up to twice as long, so that they spread. */
const RETRY_AFTER_OUTAGE_MS = 10_000;
/** A try that comes this much before its time is made all the same. */
const EARLY_MS_MAX = 1_000;

export interface WebhookActivityDeps {
  events: Pick<EventStore, 'get' | 'setDelivery'>;
  deliveries: Pick<DeliveryStore, 'keep' | 'count' | 'last'>;
  endpoints: Pick<EndpointStore, 'get'>;
  sealer: Pick<Sealer, 'open'>;
  /** Whether sandbox endpoints may be on this machine. Live ones never. */
  allowPrivate: boolean;
  post: PostWebhook;
  /** Unix time in ms. */
  now: () => number;
  /** From 0 to 1. */
  random: () => number;
  log: Record<'info' | 'warn', (fields: LogFields, message: string) => void>;
  /** The waits between attempts; a test may shorten them. */
  nextDelayMs?: typeof nextAttemptDelayMs;
  /** How long a try waits out an outage of the database; a test may shorten it. */
  patienceMs?: number;
}

/** All that a delivery's log lines carry: no body, no URL, no secret. */
interface LogFields {
  request_id: string;
  event_id: string;
  attempt: number;
}

export type DeliveryOutcome = 'delivered' | 'no_endpoint';
export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export function createWebhookActivities(deps: WebhookActivityDeps) {
  return {
    /**
     * Makes the next attempt, numbered by the rows that were kept: the server's own count also holds
     * tries that our outages ended. The frozen body is signed anew and sent to the endpoint as it
     * stands now.
     * @throws ApplicationFailure `WebhookAttemptFailed`, carrying when to try again; not retryable
     *   `WebhookExhausted` after the twelfth attempt; `RecordUnreachable`, which uses none up
     * @see docs/webhooks.md#what-is-posted
     */
    deliverWebhook: (input: WebhookDeliveryInput) => deliverWebhook(deps, input),
    /** After the last attempt. `delivered` when one got through and only its report was lost. */
    recordExhausted: (input: WebhookDeliveryInput) => recordExhausted(deps, input),
  };
}

async function deliverWebhook(
  deps: WebhookActivityDeps,
  input: WebhookDeliveryInput,
): Promise<DeliveryOutcome> {
  const found = await untilReachable(deps, () => lookUp(deps, input));
  if (found === 'delivered' || found === 'no_endpoint') return found;
  const { event, endpoint, sealed, attempt, atMs } = found;
  const owner = endpointOwner(event.account_id, event.livemode);
  const secret = await deps.sealer.open(sealed, owner);
  const { url } = endpoint;
  const allowPrivate = deps.allowPrivate && !event.livemode;
  const result = await postEvent(deps.post, { event, url, secret, atMs, allowPrivate });
  const delayMs = isAcknowledged(result) ? null : nextDelayMs(deps, attempt, result);
  const nextAtMs = delayMs === null ? null : deps.now() + delayMs;
  const row = rowOf(input, { attempt, url, atMs, result, nextAtMs });
  // Carried to the next try where the database can't be reached: what was posted must be counted.
  await untilReachable(
    deps,
    () => record(deps, row),
    () => heartbeat(row),
  );
  const { request_id, event_id } = input;
  const fields = { request_id, event_id, attempt };
  if (isAcknowledged(result)) {
    deps.log.info(fields, 'webhook delivered');
    return 'delivered';
  }
  deps.log.info(fields, 'webhook attempt failed');
  throw attemptFailed(describeResult(result, url), attempt, delayMs);
}

/**
 * Waits out a short outage of the database; a longer one ends this try, and the next one comes soon.
 * Neither is one of the merchant's attempts: these are counted by the rows that were kept.
 * @throws ApplicationFailure `RecordUnreachable`, after `givenUp`
 */
async function untilReachable<T>(
  { patienceMs, random }: WebhookActivityDeps,
  work: () => Promise<T>,
  givenUp: () => void = () => {},
): Promise<T> {
  try {
    return await patiently(work, patienceMs);
  } catch (error) {
    if (!(error instanceof MongoError)) throw error;
    givenUp();
    throw ApplicationFailure.create({
      type: 'RecordUnreachable',
      message: `The database can't be reached: ${error.message}`,
      nextRetryDelay: RETRY_AFTER_OUTAGE_MS * (1 + random()),
    });
  }
}

/** The event, its endpoint and its secret, and the number of the attempt that is to be made now. */
async function lookUp(deps: WebhookActivityDeps, input: WebhookDeliveryInput) {
  const { event_id, request_id } = input;
  const last = await lastAttempt(deps, input);
  if (last?.outcome === 'delivered') {
    await setDelivery(deps, input, 'delivered', null);
    return 'delivered';
  }
  if (last !== null) keepToWait(deps, last);
  const event = await deps.events.get(event_id);
  if (event === null) throw ApplicationFailure.nonRetryable(`No ${event_id}.`, 'EventUnknown');
  const atMs = deps.now();
  const endpoint = await deps.endpoints.get(event.account_id, event.livemode);
  const sealed = endpoint === null ? undefined : signingSecret(endpoint, new Date(atMs));
  const attempt = (last?.attempt ?? 0) + 1;
  if (endpoint === null || sealed === undefined) {
    await setDelivery(deps, input, 'no_endpoint', null);
    deps.log.info({ request_id, event_id, attempt }, 'no webhook endpoint');
    return 'no_endpoint';
  }
  return { event, endpoint, sealed, attempt, atMs };
}

/** The latest attempt of this run; one that an earlier try could not record is recorded first. */
async function lastAttempt(
  deps: WebhookActivityDeps,
  input: WebhookDeliveryInput,
): Promise<DeliveryDocument | null> {
  const { attempt, heartbeatDetails } = activityInfo();
  // The first try of a run has made no attempt, unless an earlier workflow of it was lost.
  if (attempt === 1 && input.resume !== true) return null;
  const kept = await deps.deliveries.last(input.event_id, input.run);
  const posted: unknown = heartbeatDetails;
  if (!isRowOf(posted, input) || posted.attempt <= (kept?.attempt ?? 0)) return kept;
  await record(deps, posted);
  return posted;
}

/**
 * Waits as an earlier try has decided, which ended after its attempt was kept.
 * @throws ApplicationFailure while the next attempt is not due, or when none follows
 */
function keepToWait(deps: WebhookActivityDeps, last: DeliveryDocument): void {
  const { attempt, next_attempt_at } = last;
  if (attempt >= ATTEMPTS_MAX || next_attempt_at === null) {
    throw attemptFailed(describeRow(last), attempt, null);
  }
  const leftMs = Date.parse(next_attempt_at) - deps.now();
  if (leftMs > EARLY_MS_MAX) throw attemptFailed(describeRow(last), attempt, leftMs);
}

/** Null after the last attempt. */
function nextDelayMs(
  deps: WebhookActivityDeps,
  attempt: number,
  result: PostResult,
): number | null {
  if (attempt >= ATTEMPTS_MAX) return null;
  const asked = result.outcome === 'response' ? result.retryAfterSeconds : undefined;
  return (deps.nextDelayMs ?? nextAttemptDelayMs)({
    attempt,
    firstAtMs: activityInfo().scheduledTimestampMs,
    nowMs: deps.now(),
    retryAfterMs: asked === undefined ? undefined : asked * 1_000,
    jitter: deps.random(),
  });
}

/** The row first: the event's count is the number of rows, so a repeat after a crash agrees. */
async function record(deps: WebhookActivityDeps, row: DeliveryDocument): Promise<void> {
  await deps.deliveries.keep(row);
  const status = row.outcome === 'delivered' ? 'delivered' : 'pending';
  await setDelivery(deps, row, status, row.next_attempt_at);
}

/** Keeps the state of the delivery; after a redelivery the last report of an earlier run only counts. */
async function setDelivery(
  deps: WebhookActivityDeps,
  { event_id, run }: Pick<WebhookDeliveryInput, 'event_id' | 'run'>,
  status: DeliveryStatus,
  next_attempt_at: string | null,
): Promise<void> {
  const attempts = await deps.deliveries.count(event_id);
  const standing = { status, attempts, next_attempt_at };
  const written = await deps.events.setDelivery(event_id, standing, run);
  if (written === null) await deps.events.setDelivery(event_id, { attempts });
}

/** @param delayMs null after the last attempt: no other follows */
function attemptFailed(what: string, attempt: number, delayMs: number | null): ApplicationFailure {
  return ApplicationFailure.create({
    type: delayMs === null ? WEBHOOK_EXHAUSTED : 'WebhookAttemptFailed',
    // The number stands in the text, since the server's own count holds other tries, too.
    message: `${what} (attempt ${attempt} of ${ATTEMPTS_MAX})`,
    nonRetryable: delayMs === null,
    ...(delayMs === null ? {} : { nextRetryDelay: delayMs }),
    // The receiver's fault, not ours: no error in our logs and metrics.
    category: ApplicationFailureCategory.BENIGN,
  });
}

async function recordExhausted(
  deps: WebhookActivityDeps,
  input: WebhookDeliveryInput,
): Promise<'delivered' | 'exhausted'> {
  const { request_id, event_id } = input;
  if ((await deps.deliveries.last(event_id, input.run))?.outcome === 'delivered') {
    await setDelivery(deps, input, 'delivered', null);
    return 'delivered';
  }
  await setDelivery(deps, input, 'exhausted', null);
  deps.log.warn({ request_id, event_id, attempt: ATTEMPTS_MAX }, 'webhook exhausted');
  return 'exhausted';
}
