import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { WEBHOOK_QUEUE } from '../../domain/task-queues';
import { type DeliveryStatus, webhookWorkflowId } from '../../domain/webhook/event';
import type { Stores } from '../../store';
import type { EventDocument, ResendFilter } from '../../store/events';
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
async function requireEndpoint(
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
export async function findEvent({ events }: Pick<Stores, 'events'>, id: string) {
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

/** Pace that an endpoint can handle after an outage. */
const PER_SECOND = 20;
const PAGE = 100;

export interface SelectionCount {
  found: number;
  by_status: Partial<Record<DeliveryStatus, number>>;
}

/** @throws ServiceError `webhook_not_set` */
export async function countSelected(
  { stores }: Pick<RedeliverDeps, 'stores'>,
  filter: ResendFilter,
): Promise<SelectionCount> {
  await requireEndpoint(stores, filter);
  const counts = await Promise.all(
    filter.statuses.map(async (status) => {
      const count = await stores.events.countResendable({ ...filter, statuses: [status] });
      return [status, count] as const;
    }),
  );
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  return { found: total, by_status: Object.fromEntries(counts) };
}

export interface SendTotals {
  sent: number;
  /** Events that another redelivery sends at the same moment. */
  skipped: number;
}

/**
 * Sends every selected event again, oldest first. A repeat sends those that are still not
 * delivered.
 * @param onProgress called after every event
 * @throws RedeliveryStopped with the position to continue from
 */
export async function redeliverAll(
  deps: RedeliverDeps,
  filter: ResendFilter,
  onProgress: (sent: SendTotals) => void,
  pageSize = PAGE,
): Promise<SendTotals> {
  const total = { sent: 0, skipped: 0 };
  for (let since = filter.since; ; ) {
    const page = await deps.stores.events.listResendable({ ...filter, since }, pageSize);
    for (const { _id, position } of page) {
      const pause = wait(1_000 / PER_SECOND);
      await sendOne(deps, _id, position, total);
      onProgress(total);
      await pause;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return total;
    since = nextPosition(last.position);
  }
}

async function sendOne(deps: RedeliverDeps, id: string, position: string, total: SendTotals) {
  try {
    await redeliverEvent(deps, id);
    total.sent += 1;
  } catch (error) {
    const isRunning = error instanceof ServiceError && error.code === 'delivery_running';
    if (!isRunning) throw new RedeliveryStopped(error, total.sent, position);
    total.skipped += 1;
  }
}

export class RedeliveryStopped extends Error {
  readonly sent: number;
  /** Position of the next event to send. */
  readonly position: string;

  constructor(cause: unknown, sent: number, position: string) {
    super('The redelivery stopped.', { cause });
    this.sent = sent;
    this.position = position;
  }
}

/** All positions have the same length. */
function nextPosition(position: string): string {
  return `${position}!`;
}
