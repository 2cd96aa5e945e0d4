import { setTimeout as wait } from 'node:timers/promises';
import { ServiceError } from '../../domain/errors';
import type { DeliveryStatus } from '../../domain/webhook/event';
import type { ResendFilter } from '../../store/events';
import { type RedeliverDeps, redeliverEvent, requireEndpoint } from './redeliver';

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

async function sendOne(
  deps: RedeliverDeps,
  id: string,
  position: string,
  total: SendTotals,
): Promise<void> {
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
