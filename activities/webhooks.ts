import { ApplicationFailure, activityInfo, heartbeat } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { MongoError } from 'mongodb';
import type { WebhookDeliveryInput } from '../src/domain/delivery';
import { ATTEMPTS_MAX } from '../src/domain/webhook-schedule';
import type { DeliveryDocument } from '../src/store/deliveries';
import { endpointOwner } from '../src/store/endpoints';
import { patiently } from './patiently';
import {
  attemptFailed,
  type DeliveryOutcome,
  endWith,
  makeAttempt,
  type WebhookActivityDeps,
} from './webhook-next';
import { type AttemptInput, eventUnknown, keepAttempt, untilReachable } from './webhook-record';

/** Time for recording an attempt that a workflow task waits for; later, the next step does it. */
const TASK_PATIENCE_MS = 1_000;
/** Outcome of a first attempt; `not_made` uses none up. */
export type FirstOutcome = DeliveryOutcome | 'failed' | 'not_made' | { posted: DeliveryDocument };
export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

export function createWebhookActivities(deps: WebhookActivityDeps) {
  return {
    /**
     * Makes the first attempt where its answer is likely to come at once, as a local activity: the
     * task that starts the delivery then ends it, too. It is kept, counted and shown as any other.
     * @throws ApplicationFailure `EventUnknown`
     */
    firstAttempt: (input: WebhookDeliveryInput) => firstAttempt(deps, input),
    /**
     * Makes the next attempt, numbered by the rows that were kept: the server's own count also holds
     * tries that our outages ended, and those that waited for their turn. The frozen body is signed
     * anew and sent to the endpoint as it stands now.
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
  const { event } = input;
  if (event === undefined) return 'not_made';
  const turn = deps.limits.admitPrompt(endpointOwner(event.account_id, event.livemode));
  if (turn === null) return 'not_made';
  const made = await makeAttempt({ ...deps, patienceMs: 0 }, input, event, turn).catch(
    () => 'not_made' as const,
  );
  if (typeof made === 'string') return made;
  try {
    await patiently(() => keepAttempt(deps, made), TASK_PATIENCE_MS);
  } catch (error) {
    if (!(error instanceof MongoError)) throw error;
    // A history is kept for long: it gets neither the path, which may hold a token, nor the answer.
    return { posted: { ...made, url: new URL(made.url).origin, response_excerpt: '' } };
  }
  logAttempt(deps, input, made);
  return made.outcome;
}

async function deliverWebhook(
  deps: WebhookActivityDeps,
  input: AttemptInput,
): Promise<DeliveryOutcome> {
  const event = input.event ?? (await untilReachable(deps, () => readEvent(deps, input)));
  const turn = deps.limits.admit(endpointOwner(event.account_id, event.livemode));
  if (!turn.admitted) throw outOfTurn(turn.waitMs);
  const made = await makeAttempt(deps, input, event, turn);
  if (made === 'delivered' || made === 'no_endpoint') return made;
  // Carried to the next try where the database can't be reached: what was posted must be counted.
  await untilReachable(
    deps,
    () => keepAttempt(deps, made),
    () => heartbeat(made),
  );
  logAttempt(deps, input, made);
  if (made.outcome === 'delivered') return 'delivered';
  throw attemptFailed(made, deps.now());
}

async function readEvent(deps: WebhookActivityDeps, { event_id }: WebhookDeliveryInput) {
  const event = await deps.events.get(event_id);
  if (event === null) throw eventUnknown(event_id);
  return event;
}

/** No attempt: it comes back when its turn is likely, and holds no slot meanwhile. */
function outOfTurn(waitMs: number): ApplicationFailure {
  const { heartbeatDetails } = activityInfo();
  // An attempt that could not be recorded yet is carried on.
  if (heartbeatDetails !== undefined) heartbeat(heartbeatDetails);
  return ApplicationFailure.create({
    type: 'EndpointBusy',
    message: 'Other attempts at this endpoint are under way: this one waits for its turn.',
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
  if (last?.outcome === 'delivered') {
    await keepAttempt(deps, last);
    return 'delivered';
  }
  await endWith(deps, input, 'exhausted');
  deps.log.warn({ request_id, event_id, attempt: ATTEMPTS_MAX }, 'webhook exhausted');
  return 'exhausted';
}
