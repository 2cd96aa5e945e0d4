import type { Client } from '@temporalio/client';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { WEBHOOK_QUEUE } from '../../domain/task-queues';
import { webhookWorkflowId } from '../../domain/webhook/event';
import type { Stores } from '../../store';
import type { EventDocument } from '../../store/events';
import { withTimeout } from '../../temporal/in-time';
import { getWorkflowStatus } from '../../temporal/status';
import { replaceDelivery } from './deliveries';

export interface RedeliverDeps {
  stores: Pick<Stores, 'events' | 'endpoints'>;
  temporal: Client;
  now: () => Date;
  /** Task queue; tests have their own. */
  webhookQueue?: string;
}

/**
 * Sends an event again, delivered or not: `webhook:{event id}` starts again with the next run
 * number and all attempts, to the current endpoint. It replaces a waiting delivery.
 * @throws ServiceError `event_not_found`, `webhook_not_set`, `temporal_unavailable`;
 *   `delivery_running` when another redelivery started first
 */
export async function redeliverEvent(deps: RedeliverDeps, id: string): Promise<EventDocument> {
  const event = await findEvent(deps.stores, id);
  await requireEndpoint(deps.stores, event);
  // This call comes first, so an outage leaves the event unchanged.
  await getWorkflowStatus(deps.temporal, webhookWorkflowId(id));
  // Later, `pending` could overwrite the outcome of a finished delivery.
  const { events } = deps.stores;
  const reservedEvent = await events.reserveRun(id, event.delivery.run, deps.now().toISOString());
  if (reservedEvent === null) throw createRunningError(id);
  try {
    await startReservedRun(deps, reservedEvent);
  } catch (error) {
    // Safe even if it did start: each attempt records the state of the delivery.
    await events.releaseRun(id, reservedEvent.delivery, event.delivery);
    throw error;
  }
  return reservedEvent;
}

/**
 * Starts the reserved run. This may terminate a run that was reserved later but started sooner:
 * that one is started again.
 */
async function startReservedRun(deps: RedeliverDeps, reservedEvent: EventDocument): Promise<void> {
  const { temporal, webhookQueue = WEBHOOK_QUEUE, stores } = deps;
  const starter = { temporal, webhookQueue };
  let startedEvent = reservedEvent;
  await withTimeout(temporal, () => replaceDelivery(starter, reservedEvent, { resume: false }));
  for (;;) {
    const current = await stores.events.get(reservedEvent._id);
    if (current === null || current.delivery.run <= startedEvent.delivery.run) return;
    await withTimeout(temporal, () => replaceDelivery(starter, current, { resume: true }));
    startedEvent = current;
  }
}

/** @throws ServiceError `webhook_not_set` */
export async function requireEndpoint(
  { endpoints }: Pick<Stores, 'endpoints'>,
  { account_id, livemode }: { account_id: string; livemode: boolean },
): Promise<void> {
  if ((await endpoints.get(account_id, livemode)) !== null) return;
  const env = toEnv(livemode);
  throw new ServiceError(
    'webhook_not_set',
    `Nothing to send it to: no ${env} webhook endpoint is registered for ${account_id}.`,
  );
}

/** @throws ServiceError `event_not_found` */
export async function findEvent(
  { events }: Pick<Stores, 'events'>,
  id: string,
): Promise<EventDocument> {
  const event = await events.get(id);
  if (event !== null) return event;
  throw new ServiceError('event_not_found', `There is no event ${id}.`);
}

function createRunningError(id: string): ServiceError {
  return new ServiceError(
    'delivery_running',
    `Another redelivery of ${id} started at the same moment and is still running.`,
  );
}
