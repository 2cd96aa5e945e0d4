import { setTimeout as wait } from 'node:timers/promises';
import { ServiceError } from '../../domain/errors';
import type { DeliveryStatus } from '../../domain/webhook/event';
import type { Stores } from '../../store';
import type { DeliveryRow, ResendFilter, ResendPlace } from '../../store/deliveries';
import { findEnabled, isRunning, type RedeliverDeps, redeliverRow } from './redeliver';

/** An endpoint can handle it after an outage. */
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
  const narrow = await narrowToEnabled(stores, filter);
  const counts = await Promise.all(
    filter.statuses.map(async (status) => {
      const count = await stores.deliveries.countResendable({ ...narrow, statuses: [status] });
      return [status, count] as const;
    }),
  );
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  return { found: total, by_status: Object.fromEntries(counts) };
}

/** Leaves out disabled and deleted endpoints. */
async function narrowToEnabled(
  stores: Pick<Stores, 'endpoints'>,
  filter: ResendFilter,
): Promise<ResendFilter> {
  const enabled = await findEnabled(stores, filter, undefined);
  return { ...filter, endpoint_ids: enabled.map(({ endpoint_id }) => endpoint_id) };
}

export interface SendTotals {
  sent: number;
  skipped: number;
}

/**
 * Sends oldest first. A repeat sends what is still not delivered.
 * @throws RedeliveryStopped with the position to continue from
 */
export async function redeliverAll(
  deps: RedeliverDeps,
  filter: ResendFilter,
  onProgress: (sent: SendTotals) => void,
  pageSize = PAGE,
): Promise<SendTotals> {
  const narrow = await narrowToEnabled(deps.stores, filter);
  const total = { sent: 0, skipped: 0 };
  for (let after: ResendPlace | undefined; ; ) {
    const page = await deps.stores.deliveries.listResendable(narrow, pageSize, after);
    for (const row of page) {
      const pause = wait(1_000 / PER_SECOND);
      await sendOne(deps, row, total);
      onProgress(total);
      await pause;
    }
    after = page.at(-1);
    if (after === undefined || page.length < pageSize) return total;
  }
}

async function sendOne(deps: RedeliverDeps, row: DeliveryRow, total: SendTotals) {
  try {
    await redeliverRow(deps, row);
    total.sent += 1;
  } catch (error) {
    if (!isRunning(error) && !isGone(error)) {
      throw new RedeliveryStopped(error, total.sent, row.position);
    }
    total.skipped += 1;
  }
}

export class RedeliveryStopped extends Error {
  readonly sent: number;
  readonly position: string;

  constructor(cause: unknown, sent: number, position: string) {
    super('The redelivery stopped.', { cause });
    this.sent = sent;
    this.position = position;
  }
}

/** Disabled or deleted meanwhile. */
function isGone(error: unknown): boolean {
  const codes = ['endpoint_disabled', 'webhook_endpoint_not_found'];
  return error instanceof ServiceError && codes.includes(error.code);
}
