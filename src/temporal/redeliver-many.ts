import { setTimeout as wait } from 'node:timers/promises';
import { ActFailure } from '../domain/act-failure';
import type { DeliveryStatus } from '../domain/event';
import type { SendAgainFilter } from '../store/events';
import { type RedeliverDeps, redeliverEvent, requireEndpoint } from './redeliver';

/** Pace at which an endpoint that has just come back can be asked to take what it missed. */
const PER_SECOND = 20;
const PAGE = 100;

/** Number of events that a selection holds. */
export interface Selected {
  found: number;
  by_status: Partial<Record<DeliveryStatus, number>>;
}

/** Counts what would be sent. @throws ActFailure `webhook_not_set` */
export async function countSelected(
  { stores }: Pick<RedeliverDeps, 'stores'>,
  filter: SendAgainFilter,
): Promise<Selected> {
  await requireEndpoint(stores, filter);
  const counted = await Promise.all(
    filter.statuses.map(async (status) => {
      const count = await stores.events.countToSendAgain({ ...filter, statuses: [status] });
      return [status, count] as const;
    }),
  );
  const found = counted.reduce((sum, [, count]) => sum + count, 0);
  return { found, by_status: Object.fromEntries(counted) };
}

export interface Sent {
  sent: number;
  /** Events that another redelivery was asked for at the same moment. */
  skipped: number;
}

/**
 * Sends every selected event again, the oldest first, at a measured pace. Repeating it is
 * harmless: it sends what has not been delivered meanwhile.
 * @param each called after every event
 * @throws RedeliveryStopped, telling where to go on
 */
export async function redeliverAll(
  deps: RedeliverDeps,
  filter: SendAgainFilter,
  each: (sent: Sent) => void,
  pageSize = PAGE,
): Promise<Sent> {
  const total = { sent: 0, skipped: 0 };
  for (let since = filter.since; ; ) {
    const page = await deps.stores.events.toSendAgain({ ...filter, since }, pageSize);
    for (const { _id, position } of page) {
      const pause = wait(1_000 / PER_SECOND);
      await sendOne(deps, _id, position, total);
      each(total);
      await pause;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return total;
    since = after(last.position);
  }
}

async function sendOne(
  deps: RedeliverDeps,
  id: string,
  position: string,
  total: Sent,
): Promise<void> {
  try {
    await redeliverEvent(deps, id);
    total.sent += 1;
  } catch (error) {
    const isUnderWay = error instanceof ActFailure && error.code === 'delivery_running';
    if (!isUnderWay) throw new RedeliveryStopped(error, total.sent, position);
    total.skipped += 1;
  }
}

/** End of a redelivery before all was sent; `cause` tells why. */
export class RedeliveryStopped extends Error {
  /** Events sent before it. */
  readonly sent: number;
  /** Position of the event to go on with. */
  readonly position: string;

  constructor(cause: unknown, sent: number, position: string) {
    super('The redelivery stopped.', { cause });
    this.sent = sent;
    this.position = position;
  }
}

/** Smallest text behind a position; positions have one width. */
function after(position: string): string {
  return `${position}!`;
}
