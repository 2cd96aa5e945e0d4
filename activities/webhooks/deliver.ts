import { heartbeat } from '@temporalio/activity';
import { MongoError } from 'mongodb';
import type { EndpointDeliveryInput } from '../../src/domain/webhook/delivery';
import type { DeliveryAttempt } from '../../src/store/deliveries';
import { whileHeartbeating } from './heartbeats';
import {
  attemptFailed,
  type DeliveryOutcome,
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
