import type { Client } from '@temporalio/client';
import { ActFailure } from '../domain/act-failure';
import { envOf } from '../domain/environment';
import { webhookWorkflowId } from '../domain/event';
import { WEBHOOK_QUEUE } from '../domain/task-queues';
import type { Stores } from '../store';
import type { EventDocument } from '../store/events';
import { startInstead } from './deliveries';
import { inTime } from './in-time';
import { statusOf } from './status';

export interface RedeliverDeps {
  stores: Pick<Stores, 'events' | 'endpoints'>;
  temporal: Client;
  now: () => Date;
  /** Task queue; tests have their own. */
  webhookQueue?: string;
}

/**
 * Sends an event again, delivered or not: `webhook:{event id}` starts anew with the next run
 * number and all its attempts, to the endpoint as it is now. A delivery that waits for its next
 * attempt ends for it.
 * @throws ActFailure `event_not_found`, `webhook_not_set`, `temporal_unavailable`;
 *   `delivery_running` when another redelivery came between
 */
export async function redeliverEvent(deps: RedeliverDeps, id: string): Promise<EventDocument> {
  const event = await findEvent(deps.stores, id);
  await requireEndpoint(deps.stores, event);
  // Asked first, so that an outage leaves the event as it is.
  await statusOf(deps.temporal, webhookWorkflowId(id));
  // Before the start: afterwards the delivery may already have ended, and `pending` would hide it.
  const { events } = deps.stores;
  const claimed = await events.claimRun(id, event.delivery.run, deps.now().toISOString());
  if (claimed === null) throw overtaken(id);
  try {
    await startClaimed(deps, claimed);
  } catch (error) {
    // Safe also when it did start: each attempt records where the delivery stands.
    await events.giveBackRun(id, claimed.delivery, event.delivery);
    throw error;
  }
  return claimed;
}

/**
 * Starts the claimed run. One that was claimed later may have started sooner, and ended by this
 * start: it is started again, so that what runs is what the event says.
 */
async function startClaimed(deps: RedeliverDeps, claimed: EventDocument): Promise<void> {
  const { temporal, webhookQueue = WEBHOOK_QUEUE, stores } = deps;
  const starter = { temporal, webhookQueue };
  let started = claimed;
  await inTime(temporal, () => startInstead(starter, claimed, { resume: false }));
  for (;;) {
    const now = await stores.events.get(claimed._id);
    if (now === null || now.delivery.run <= started.delivery.run) return;
    await inTime(temporal, () => startInstead(starter, now, { resume: true }));
    started = now;
  }
}

/** @throws ActFailure `webhook_not_set` */
export async function requireEndpoint(
  { endpoints }: Pick<Stores, 'endpoints'>,
  { account_id, livemode }: { account_id: string; livemode: boolean },
): Promise<void> {
  if ((await endpoints.get(account_id, livemode)) !== null) return;
  const env = envOf(livemode);
  throw new ActFailure(
    'webhook_not_set',
    `Nothing to send it to: no ${env} webhook endpoint is registered for ${account_id}.`,
  );
}

/** Finds an event. @throws ActFailure `event_not_found` */
export async function findEvent(
  { events }: Pick<Stores, 'events'>,
  id: string,
): Promise<EventDocument> {
  const event = await events.get(id);
  if (event !== null) return event;
  throw new ActFailure('event_not_found', `There is no event ${id}.`);
}

function overtaken(id: string): ActFailure {
  return new ActFailure(
    'delivery_running',
    `Another redelivery of ${id} was asked for at the same moment, and is under way.`,
  );
}
