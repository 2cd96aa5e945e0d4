import { ApplicationFailure, activityInfo, heartbeat } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { MongoError } from 'mongodb';
import { type EndpointDeliveryInput, getDeliveryId } from '../../src/domain/webhook/delivery';
import { WAIT_MS_MAX } from '../../src/webhooks/endpoint-limits';
import { readOffset, type WebhookActivityDeps } from './next-attempt';

const GONE_MAX = 20;
/** Time from Temporal to a worker in which hardly a task waits for another. */
const PROMPT_MS = 250;

/**
 * Fails without an attempt, to retry when a slot may be free. A long wait is first noted in the
 * database, where the endpoint's first response finds it.
 */
export async function buildBusyFailure(
  deps: WebhookActivityDeps,
  input: EndpointDeliveryInput,
  waitMs: number,
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
    message: isNoted
      ? 'The endpoint hangs: this attempt waits until it responds, or probes it at its time.'
      : 'Other attempts at this endpoint are in progress: this one waits for a slot.',
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

export function readDispatchMs({ now }: Pick<WebhookActivityDeps, 'now'>): number {
  return now() - activityInfo().currentAttemptScheduledTimestampMs;
}

interface Ended {
  hasResponse: boolean;
  dispatchMs: number;
}

/**
 * Starts waiting deliveries: one after each response, and one more while most of the endpoint's
 * slots are free and nothing waits for a worker. After a kill, the repeated try starts them.
 */
export async function startWaiting(
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
