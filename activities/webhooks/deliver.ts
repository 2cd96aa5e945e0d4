import { ApplicationFailure, activityInfo, heartbeat } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { MongoError } from 'mongodb';
import type { WebhookDeliveryInput } from '../../src/domain/webhook/delivery';
import { ATTEMPTS_MAX } from '../../src/domain/webhook/schedule';
import type { DeliveryDocument } from '../../src/store/deliveries';
import { endpointOwner } from '../../src/store/endpoints';
import { retryDuringOutage } from '../shared/outage';
import {
  attemptFailed,
  type DeliveryOutcome,
  endWith,
  makeAttempt,
  type WebhookActivityDeps,
} from './next-attempt';
import { type AttemptInput, storeAttempt, untilReachable } from './record';

/** Time for recording an attempt that a workflow task waits for; later, the next step does it. */
const TASK_PATIENCE_MS = 1_000;
/** Outcome of a first attempt; `skipped` uses none up. */
export type FirstOutcome = DeliveryOutcome | 'failed' | 'skipped' | { unstored: DeliveryDocument };
export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export function createWebhookActivities(deps: WebhookActivityDeps) {
  return {
    /**
     * Makes the first attempt where its answer is likely to come at once, as a local activity: the
     * task that starts the delivery then ends it, too. It is stored, counted and shown as any other.
     * @throws ApplicationFailure `EventUnknown`
     */
    firstAttempt: (input: WebhookDeliveryInput) => firstAttempt(deps, input),
    /**
     * Makes the next attempt, numbered by the stored rows: the server's own count also holds
     * tries that our outages ended, and those that waited for a slot. The frozen body is signed
     * again and sent to the endpoint as it is now.
     * @throws ApplicationFailure `WebhookAttemptFailed`, carrying when to try again; not retryable
     *   `WebhookExhausted` after the twelfth attempt; `RecordUnreachable` and `EndpointBusy`, which
     *   use none up
     * @see docs/webhooks.md#what-is-posted
     */
    deliverWebhook: (input: AttemptInput) => deliverWebhook(deps, input),
    /** After the last attempt. `delivered` when one got through and only its report was lost. */
    recordExhausted: (input: WebhookDeliveryInput) => recordExhausted(deps, input),
  };
}

async function firstAttempt(
  deps: WebhookActivityDeps,
  input: WebhookDeliveryInput,
): Promise<FirstOutcome> {
  const { account_id, livemode } = input.event;
  const admission = deps.limits.admitPrompt(endpointOwner(account_id, livemode));
  if (admission === null) return 'skipped';
  const result = await makeAttempt({ ...deps, patienceMs: 0 }, input, admission).catch(
    () => 'skipped' as const,
  );
  if (typeof result === 'string') return result;
  try {
    await retryDuringOutage(() => storeAttempt(deps, result), TASK_PATIENCE_MS);
  } catch (error) {
    if (!(error instanceof MongoError)) throw error;
    // A history is stored for long: it gets neither the path, which may hold a token, nor the answer.
    return { unstored: { ...result, url: new URL(result.url).origin, response_excerpt: '' } };
  }
  logAttempt(deps, input, result);
  return result.outcome;
}

async function deliverWebhook(
  deps: WebhookActivityDeps,
  input: AttemptInput,
): Promise<DeliveryOutcome> {
  const { account_id, livemode } = input.event;
  const admission = deps.limits.admit(endpointOwner(account_id, livemode));
  if (!admission.admitted) throw buildBusyFailure(admission.waitMs);
  const result = await makeAttempt(deps, input, admission);
  if (result === 'delivered' || result === 'no_endpoint') return result;
  // Carried to the next try where the database can't be reached: what was posted must be counted.
  await untilReachable(
    deps,
    () => storeAttempt(deps, result),
    () => heartbeat(result),
  );
  logAttempt(deps, input, result);
  if (result.outcome === 'delivered') return 'delivered';
  throw attemptFailed(result, deps.now());
}

/** No attempt: it comes back when a slot is likely to be free, and holds none meanwhile. */
function buildBusyFailure(waitMs: number): ApplicationFailure {
  const { heartbeatDetails } = activityInfo();
  // An attempt that could not be recorded yet is carried on.
  if (heartbeatDetails !== undefined) heartbeat(heartbeatDetails);
  return ApplicationFailure.create({
    type: 'EndpointBusy',
    message: 'Other attempts at this endpoint are in progress: this one waits for a slot.',
    nextRetryDelay: waitMs,
    category: ApplicationFailureCategory.BENIGN,
  });
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
  const last = await deps.deliveries.last(event_id, input.run);
  if (last?.outcome === 'delivered') return 'delivered';
  await endWith(deps, input, 'exhausted');
  deps.log.warn({ request_id, event_id, attempt: ATTEMPTS_MAX }, 'webhook exhausted');
  return 'exhausted';
}
