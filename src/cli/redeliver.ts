import type { Client } from '@temporalio/client';
import { webhookWorkflowId } from '../domain/event';
import { WEBHOOK_QUEUE } from '../domain/task-queues';
import type { Stores } from '../store';
import type { EventDocument } from '../store/events';
import { startAgain } from '../temporal/deliveries';
import { statusOf } from '../temporal/status';
import { CliFailure } from './failure';
import { when } from './output';
import { inTime, isAlreadyStarted } from './temporal-call';

export interface RedeliverDeps {
  stores: Pick<Stores, 'events' | 'endpoints'>;
  temporal: Client;
  now: () => Date;
  /** Task queue; tests have their own. */
  webhookQueue?: string;
}

/**
 * Sends an event again, delivered or not: `webhook:{event id}` starts anew with the next run
 * number and all its attempts, to the endpoint as it is now.
 * @throws CliFailure `event_not_found`, `webhook_not_set`, `delivery_running`,
 *   `temporal_unavailable`
 */
export async function redeliverEvent(deps: RedeliverDeps, id: string): Promise<EventDocument> {
  const event = await findEvent(deps.stores, id);
  const { account_id, livemode } = event;
  if ((await deps.stores.endpoints.get(account_id, livemode)) === null) {
    const env = livemode ? 'live' : 'sandbox';
    throw new CliFailure(
      'webhook_not_set',
      `Nothing to send it to: no ${env} webhook endpoint is registered for ${account_id}.`,
    );
  }
  if ((await statusOf(deps.temporal, webhookWorkflowId(id))) === 'RUNNING')
    throw stillRunning(event);
  // Before the start: afterwards the delivery may already have ended, and `pending` would hide it.
  const { events } = deps.stores;
  const claimed = await events.claimRun(id, event.delivery.run, deps.now().toISOString());
  if (claimed === null) throw stillRunning(event);
  try {
    await inTime(deps.temporal, () =>
      startAgain(
        { temporal: deps.temporal, webhookQueue: deps.webhookQueue ?? WEBHOOK_QUEUE },
        claimed,
      ),
    );
  } catch (error) {
    // Safe also when it did start: each attempt records where the delivery stands.
    await events.giveBackRun(id, claimed.delivery, event.delivery);
    throw isAlreadyStarted(error) ? stillRunning(event) : error;
  }
  return claimed;
}

/** Finds an event. @throws CliFailure `event_not_found` */
export async function findEvent(
  { events }: Pick<Stores, 'events'>,
  id: string,
): Promise<EventDocument> {
  const event = await events.get(id);
  if (event !== null) return event;
  throw new CliFailure('event_not_found', `There is no event ${id}.`);
}

function stillRunning({ _id, delivery }: EventDocument): CliFailure {
  const next =
    delivery.next_attempt_at === null
      ? ''
      : ` The next attempt is due at ${when(delivery.next_attempt_at)}.`;
  return new CliFailure(
    'delivery_running',
    `The delivery of ${_id} is still under way, ${delivery.attempts} attempts made.${next}`,
  );
}
