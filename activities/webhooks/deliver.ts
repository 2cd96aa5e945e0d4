import { ApplicationFailure, activityInfo, Context, heartbeat } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { MongoError } from 'mongodb';
import { type EndpointDeliveryInput, getDeliveryId } from '../../src/domain/events/delivery';
import type { DeliveryAttempt } from '../../src/store/deliveries';
import { HostBusy, WAIT_MS_MAX } from '../../src/webhooks/endpoint-limits';
import {
  type AttemptInput,
  attemptFailed,
  type DeliveryOutcome,
  isRepeatedTry,
  makeAttempt,
  readOffset,
  retryDuringOutage,
  storeAttempt,
  untilReachable,
  type WebhookActivityDeps,
} from './record';

const TASK_PATIENCE_MS = 1_000;
/** `skipped` uses no attempt up. */
export type FirstOutcome = DeliveryOutcome | 'failed' | 'skipped' | { unstored: DeliveryAttempt };
export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export function createWebhookActivities(deps: WebhookActivityDeps) {
  return {
    /**
     * Runs as a local activity where an answer is likely to come at once: the first task then also
     * ends the delivery.
     * @throws ApplicationFailure `EventUnknown`
     */
    firstAttempt: (input: EndpointDeliveryInput) => firstAttempt(deps, input),
    /**
     * Makes the next attempt, numbered by the stored rows: the server's own count includes tries
     * that outages ended, or that waited for a slot.
     * @throws ApplicationFailure `WebhookAttemptFailed`, with the retry time; not retryable
     *   `WebhookExhausted` after the twelfth attempt; `RecordUnreachable` and `EndpointBusy`, which
     *   use none up
     * @see docs/webhooks.md#what-is-posted
     */
    deliverWebhook: (input: AttemptInput) => whileHeartbeating(() => deliverWebhook(deps, input)),
  };
}

async function firstAttempt(
  deps: WebhookActivityDeps,
  input: EndpointDeliveryInput,
): Promise<FirstOutcome> {
  const admission = deps.limits.admitPrompt(input.endpoint_id);
  if (admission === null) return 'skipped';
  const result = await makeAttempt({ ...deps, patienceMs: 0 }, input, admission).catch(
    () => 'skipped' as const,
  );
  if (typeof result === 'string') return result;
  const { row, endpoint } = result;
  try {
    await retryDuringOutage(() => storeAttempt(deps, row), TASK_PATIENCE_MS);
  } catch (error) {
    if (!(error instanceof MongoError)) throw error;
    return { unstored: forHistory(row) };
  }
  await deps.health.note(endpoint, row);
  logAttempt(deps, input, row);
  return row.outcome;
}

async function deliverWebhook(
  deps: WebhookActivityDeps,
  input: AttemptInput,
): Promise<DeliveryOutcome> {
  const admission = deps.limits.admit(input.endpoint_id);
  if (!admission.admitted) throw await buildBusyFailure(deps, input, admission.waitMs, ENDPOINT);
  const mayOthersWait = admission.isProbe || isRepeatedTry();
  const dispatchMs = deps.now() - activityInfo().currentAttemptScheduledTimestampMs;
  const result = await makeAttempt(deps, input, admission).catch(async (error: unknown) => {
    if (!(error instanceof HostBusy)) throw error;
    throw await buildBusyFailure(deps, input, error.waitMs, HOST);
  });
  if (typeof result === 'string') {
    if (mayOthersWait) await startWaiting(deps, input, { hasResponse: false, dispatchMs });
    return result;
  }
  const { row, endpoint } = result;
  // A sent attempt must count: without the database, the next try carries it.
  await untilReachable(
    deps,
    () => storeAttempt(deps, row),
    () => heartbeat(forHistory(row)),
  );
  await deps.health.note(endpoint, row);
  logAttempt(deps, input, row);
  if (row.status_code !== null && mayOthersWait) {
    await startWaiting(deps, input, { hasResponse: true, dispatchMs });
  }
  if (row.outcome === 'delivered') return 'delivered';
  throw attemptFailed(row, deps.now() + (await readOffset(deps, input)));
}

/** Temporal gets neither the path, which may hold a token, nor the answer. */
function forHistory(result: DeliveryAttempt): DeliveryAttempt {
  return { ...result, url: new URL(result.url).origin, response_excerpt: '' };
}

function logAttempt(
  { log }: WebhookActivityDeps,
  { request_id, event_id }: EndpointDeliveryInput,
  { endpoint_id, attempt, outcome, next_attempt_at }: DeliveryAttempt,
): void {
  const fields = { request_id, event_id, endpoint_id, attempt };
  if (outcome === 'delivered') log.info(fields, 'webhook delivered');
  else if (next_attempt_at !== null) log.info(fields, 'webhook attempt failed');
  else log.warn(fields, 'webhook exhausted');
}

/** Well within the heartbeat timeout that the workflow sets. */
const HEARTBEAT_MS = 3_000;

/**
 * Shows that a try still runs, so that the next one follows soon after a lost worker. Each report
 * repeats an attempt that an earlier try could not store.
 */
export async function whileHeartbeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const report = () => context.heartbeat(context.info.heartbeatDetails);
  const timer = setInterval(report, HEARTBEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

const GONE_MAX = 20;
/** Time from Temporal to a worker in which hardly a task waits for another. */
const PROMPT_MS = 250;

const ENDPOINT = {
  wait: 'Other attempts at this endpoint are in progress: this one waits for a slot.',
  longWait: 'The endpoint hangs: this attempt waits until it responds, or probes it at its time.',
};
const AT_HOST = 'Many attempts are made at the host of this endpoint: this one waits.';
const HOST = { wait: AT_HOST, longWait: AT_HOST };

/**
 * Fails without an attempt, to retry when a slot may be free. A long wait is first noted in the
 * database, where the endpoint's first response finds it.
 */
async function buildBusyFailure(
  deps: WebhookActivityDeps,
  input: EndpointDeliveryInput,
  waitMs: number,
  reason: typeof ENDPOINT,
): Promise<ApplicationFailure> {
  const { heartbeatDetails } = activityInfo();
  const isUnstored = heartbeatDetails !== undefined;
  if (isUnstored) heartbeat(heartbeatDetails);
  // An attempt that is not stored yet must not wait long.
  const isLong = waitMs > WAIT_MS_MAX && !isUnstored;
  const isNoted = isLong && (await noteWaiting(deps, input, waitMs));
  const shortMs = waitMs > WAIT_MS_MAX ? (WAIT_MS_MAX * (1 + deps.random())) / 2 : waitMs;
  return ApplicationFailure.create({
    type: 'EndpointBusy',
    message: isNoted ? reason.longWait : reason.wait,
    nextRetryDelay: isNoted ? waitMs : shortMs,
    category: ApplicationFailureCategory.BENIGN,
  });
}

async function noteWaiting(
  deps: WebhookActivityDeps,
  input: EndpointDeliveryInput,
  waitMs: number,
): Promise<boolean> {
  if (input.attempts_max !== undefined) return false;
  try {
    const until = new Date(deps.now() + (await readOffset(deps, input)) + waitMs).toISOString();
    return await deps.deliveries.noteWaiting(getDeliveryId(input), until);
  } catch (error) {
    if (error instanceof MongoError) return false;
    throw error;
  }
}

interface Ended {
  hasResponse: boolean;
  dispatchMs: number;
}

/**
 * Starts waiting deliveries: one after each response, and one more while most of the endpoint's
 * slots are free and nothing waits for a worker. After a kill, the repeated try starts them.
 */
async function startWaiting(
  deps: WebhookActivityDeps,
  input: EndpointDeliveryInput,
  { hasResponse, dispatchMs }: Ended,
): Promise<void> {
  const { request_id, event_id, endpoint_id } = input;
  const isPrompt = hasResponse && dispatchMs < PROMPT_MS;
  const count = isPrompt && deps.limits.admitMore(endpoint_id) ? 2 : 1;
  try {
    const now = new Date(deps.now() + (await readOffset(deps, input))).toISOString();
    for (let started = 0, gone = 0; started < count && gone < GONE_MAX; ) {
      const waiting = await deps.deliveries.endWait(endpoint_id, now);
      if (waiting === null) return;
      if (await deps.tryNow(waiting)) started += 1;
      else gone += 1;
    }
  } catch (err) {
    // The audit tries late deliveries, and each has a probe of its own.
    deps.log.warn({ request_id, event_id, err }, 'waiting deliveries not started');
  }
}
