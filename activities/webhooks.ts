import { ApplicationFailure, activityInfo } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import type { DeliveryStatus, WebhookDeliveryInput } from '../src/domain/event';
import { ATTEMPTS_MAX, nextAttemptDelayMs } from '../src/domain/webhook-schedule';
import type { Sealer } from '../src/keys/seal';
import type { DeliveryDocument, DeliveryStore } from '../src/store/deliveries';
import {
  type EndpointDocument,
  type EndpointStore,
  endpointOwner,
  signingSecret,
} from '../src/store/endpoints';
import type { EventDocument, EventStore } from '../src/store/events';
import type { PostWebhook } from '../src/webhooks/post';
import type { PostResult } from '../src/webhooks/post-result';
import { signPayload } from '../src/webhooks/signature';
import { patiently } from './patiently';

/** Limits an attempt to 10 s. @see docs/webhooks.md#answer-and-retries */
const ATTEMPT_TIMEOUT_MS = 10_000;
const USER_AGENT = 'durable-payments-webhooks/1';

export interface WebhookActivityDeps {
  events: Pick<EventStore, 'get' | 'setDelivery'>;
  deliveries: Pick<DeliveryStore, 'keep' | 'count' | 'isDelivered'>;
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
     * Makes one attempt, numbered by the server's own retries. The frozen body is signed anew and sent
     * to the endpoint as it stands now.
     * @throws ApplicationFailure `WebhookAttemptFailed`, carrying when to try again.
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
  const { attempt } = activityInfo();
  const { request_id, event_id } = input;
  const fields = { request_id, event_id, attempt };
  const found = await patiently(() => lookUp(deps, input, attempt));
  if (found === 'delivered' || found === 'no_endpoint') return found;
  const { event, endpoint, sealed, atMs } = found;
  const owner = endpointOwner(event.account_id, event.livemode);
  const secret = await deps.sealer.open(sealed, owner);
  const result = await post(deps, event, endpoint, signPayload(secret, event.body, seconds(atMs)));
  if (isAcknowledged(result)) {
    const made = { url: endpoint.url, atMs, result, delayMs: null };
    await patiently(() => record(deps, input, made));
    deps.log.info(fields, 'webhook delivered');
    return 'delivered';
  }
  const delayMs = nextDelayMs(deps, result);
  const made = { url: endpoint.url, atMs, result, delayMs };
  await patiently(() => record(deps, input, made));
  deps.log.info(fields, 'webhook attempt failed');
  throw attemptFailed(result, endpoint, delayMs);
}

/** The event, its endpoint and its secret, as they are at this attempt. */
async function lookUp(deps: WebhookActivityDeps, input: WebhookDeliveryInput, attempt: number) {
  const { event_id, request_id } = input;
  if (attempt > 1 && (await wasDelivered(deps, input))) return 'delivered';
  const event = await deps.events.get(event_id);
  if (event === null) throw ApplicationFailure.nonRetryable(`No ${event_id}.`, 'EventUnknown');
  const atMs = deps.now();
  const endpoint = await deps.endpoints.get(event.account_id, event.livemode);
  const sealed = endpoint === null ? undefined : signingSecret(endpoint, new Date(atMs));
  if (endpoint === null || sealed === undefined) {
    await setDelivery(deps, event_id, 'no_endpoint', null);
    deps.log.info({ request_id, event_id, attempt }, 'no webhook endpoint');
    return 'no_endpoint';
  }
  return { event, endpoint, sealed, atMs };
}

function post(
  deps: WebhookActivityDeps,
  event: EventDocument,
  { url }: EndpointDocument,
  signature: string,
): Promise<PostResult> {
  return deps.post({
    url,
    headers: {
      'Content-Type': 'application/json',
      'Service-Signature': signature,
      'Service-Event-Type': event.type,
      'User-Agent': USER_AGENT,
    },
    body: event.body,
    timeoutMs: ATTEMPT_TIMEOUT_MS,
    allowPrivate: deps.allowPrivate && !event.livemode,
  });
}

/** Null after the last attempt. */
function nextDelayMs(deps: WebhookActivityDeps, result: PostResult): number | null {
  const { attempt, scheduledTimestampMs } = activityInfo();
  if (attempt >= ATTEMPTS_MAX) return null;
  const asked = result.outcome === 'response' ? result.retryAfterSeconds : undefined;
  return (deps.nextDelayMs ?? nextAttemptDelayMs)({
    attempt,
    firstAtMs: scheduledTimestampMs,
    nowMs: deps.now(),
    retryAfterMs: asked === undefined ? undefined : asked * 1_000,
    jitter: deps.random(),
  });
}

interface AttemptMade {
  url: string;
  atMs: number;
  result: PostResult;
  delayMs: number | null;
}

/** The row first: the event's count is the number of rows, so a repeat after a crash agrees. */
async function record(
  deps: WebhookActivityDeps,
  { event_id, run }: WebhookDeliveryInput,
  { url, atMs, result, delayMs }: AttemptMade,
): Promise<void> {
  const isResponse = result.outcome === 'response';
  const isDelivered = isAcknowledged(result);
  const row: DeliveryDocument = {
    event_id,
    run,
    attempt: activityInfo().attempt,
    at: new Date(atMs).toISOString(),
    url,
    status_code: isResponse ? result.status : null,
    error: isResponse ? null : result.message,
    duration_ms: result.durationMs,
    response_excerpt: isResponse ? result.excerpt : '',
    outcome: isDelivered ? 'delivered' : 'failed',
    next_attempt_at: delayMs === null ? null : new Date(deps.now() + delayMs).toISOString(),
  };
  await deps.deliveries.keep(row);
  const status = isDelivered ? 'delivered' : 'pending';
  await setDelivery(deps, event_id, status, row.next_attempt_at);
}

async function setDelivery(
  deps: WebhookActivityDeps,
  event_id: string,
  status: DeliveryStatus,
  next_attempt_at: string | null,
): Promise<void> {
  const attempts = await deps.deliveries.count(event_id);
  await deps.events.setDelivery(event_id, { status, attempts, next_attempt_at });
}

/** An attempt got through but its report was lost: it is not posted again. */
async function wasDelivered(
  deps: WebhookActivityDeps,
  { event_id, run }: WebhookDeliveryInput,
): Promise<boolean> {
  const isDelivered = await deps.deliveries.isDelivered(event_id, run);
  if (isDelivered) await setDelivery(deps, event_id, 'delivered', null);
  return isDelivered;
}

function attemptFailed(
  result: PostResult,
  { url }: EndpointDocument,
  delayMs: number | null,
): ApplicationFailure {
  const { host } = new URL(url);
  const message =
    result.outcome === 'response'
      ? `HTTP ${result.status} from ${host}`
      : `${host}: ${result.message}`;
  return ApplicationFailure.create({
    type: 'WebhookAttemptFailed',
    message,
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
  if (await wasDelivered(deps, input)) return 'delivered';
  await setDelivery(deps, event_id, 'exhausted', null);
  deps.log.warn({ request_id, event_id, attempt: ATTEMPTS_MAX }, 'webhook exhausted');
  return 'exhausted';
}

/** @see docs/webhooks.md#answer-and-retries */
function isAcknowledged(result: PostResult): boolean {
  return result.outcome === 'response' && result.status >= 200 && result.status < 300;
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000);
}
