import { heartbeat } from '@temporalio/activity';
import { MongoError } from 'mongodb';
import { getDeliveryId, type WebhookDeliveryInput } from '../../src/domain/webhook/delivery';
import { ATTEMPTS_MAX } from '../../src/domain/webhook/schedule';
import type { DeliveryDocument } from '../../src/store/deliveries';
import { whileHeartbeating } from './heartbeats';
import {
  attemptFailed,
  type DeliveryOutcome,
  endWith,
  makeAttempt,
  readOffset,
  type WebhookActivityDeps,
} from './next-attempt';
import {
  type AttemptInput,
  isRepeatedTry,
  retryDuringOutage,
  storeAttempt,
  untilReachable,
} from './record';
import { buildBusyFailure, readDispatchMs, startWaiting } from './waiting';

const TASK_PATIENCE_MS = 1_000;
/** `skipped` uses no attempt up. */
export type FirstOutcome = DeliveryOutcome | 'failed' | 'skipped' | { unstored: DeliveryDocument };
export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export function createWebhookActivities(deps: WebhookActivityDeps) {
  return {
    /**
     * Runs as a local activity where an answer is likely to come at once: the first task then also
     * ends the delivery.
     * @throws ApplicationFailure `EventUnknown`
     */
    firstAttempt: (input: WebhookDeliveryInput) => firstAttempt(deps, input),
    /**
     * Makes the next attempt, numbered by the stored rows: the server's own count includes tries
     * that outages ended, or that waited for a slot.
     * @throws ApplicationFailure `WebhookAttemptFailed`, with the retry time; not retryable
     *   `WebhookExhausted` after the twelfth attempt; `RecordUnreachable` and `EndpointBusy`, which
     *   use none up
     * @see docs/webhooks.md#what-is-posted
     */
    deliverWebhook: (input: AttemptInput) => whileHeartbeating(() => deliverWebhook(deps, input)),
    /** Returns `delivered` when only the report was lost. */
    recordExhausted: (input: WebhookDeliveryInput) => recordExhausted(deps, input),
  };
}

async function firstAttempt(
  deps: WebhookActivityDeps,
  input: WebhookDeliveryInput,
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
  if (!admission.admitted) throw await buildBusyFailure(deps, input, admission.waitMs);
  const mayOthersWait = admission.isProbe || isRepeatedTry();
  const dispatchMs = readDispatchMs(deps);
  const result = await makeAttempt(deps, input, admission);
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
function forHistory(result: DeliveryDocument): DeliveryDocument {
  return { ...result, url: new URL(result.url).origin, response_excerpt: '' };
}

function logAttempt(
  { log }: WebhookActivityDeps,
  { request_id, event_id }: WebhookDeliveryInput,
  { attempt, outcome }: DeliveryDocument,
): void {
  const message = outcome === 'delivered' ? 'webhook delivered' : 'webhook attempt failed';
  log.info({ request_id, event_id, attempt }, message);
}

async function recordExhausted(
  deps: WebhookActivityDeps,
  input: WebhookDeliveryInput,
): Promise<'delivered' | 'exhausted'> {
  const { request_id, event_id } = input;
  const last = await deps.deliveries.last(getDeliveryId(input), input.run);
  if (last?.outcome === 'delivered') return 'delivered';
  await endWith(deps, input, 'exhausted');
  deps.log.warn({ request_id, event_id, attempt: ATTEMPTS_MAX }, 'webhook exhausted');
  return 'exhausted';
}
