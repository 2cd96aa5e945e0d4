import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../../base/log';
import { ServiceError } from '../../domain/errors';
import { WEBHOOK_QUEUE } from '../../domain/task-queues';
import type { DeliveryStatus } from '../../domain/webhook/event';
import type { Stores } from '../../store';
import type { ResendFilter, ResendPlace } from '../../store/deliveries';
import { withTimeout } from '../../temporal/deadline';
import type { ActDeps, Owner } from '../deps';
import { accountNow } from '../merchants/clock';
import { auditRequest, withAuditLine, withOutcomeLine } from '../operators/audit/log';
import { startOfDay } from '../paging';
import { type RecordedEvents, startDeliveries } from './deliveries';
import { findOwnEvent } from './list';
import { findEnabled, type RedeliverDeps, redeliverEvent } from './redeliver';

export type Redeliveries = ReturnType<typeof createRedeliveries>;

export function createRedeliveries(deps: RedeliverDeps) {
  return {
    /** @throws ServiceError as `redeliverEvent` */
    one: (eventId: string) => redeliverEvent(deps, eventId),
    /**
     * @param endpoint_id undefined: all that want the event
     * @throws ServiceError as `redeliverEvent`
     */
    toSubscribers: (eventId: string, endpoint_id: string | undefined) =>
      redeliverEvent(deps, eventId, { endpoint_id, orOldest: false }),
    /** Starts the first delivery. @throws ServiceError `temporal_unavailable` */
    start: async (recorded: RecordedEvents): Promise<void> => {
      const { temporal, webhookQueue = WEBHOOK_QUEUE } = deps;
      await withTimeout(temporal, () => startDeliveries({ temporal, webhookQueue }, recorded));
    },
    /** @throws ServiceError `webhook_not_set` */
    count: (filter: ResendFilter) => countSelected(deps, filter),
    /** @throws RedeliveryStopped */
    all: (filter: ResendFilter) => redeliverAll(deps, filter, () => undefined),
  };
}

interface SendDeps extends Pick<ActDeps, 'stores' | 'audit' | 'now'> {
  redeliveries: Redeliveries;
  log: Pick<Logger, 'warn'>;
}

/**
 * @returns whether the merchant has this event
 * @throws ServiceError as `redeliverEvent`
 */
export async function sendEventAgain(
  { stores, redeliveries, audit }: Pick<SendDeps, 'stores' | 'redeliveries' | 'audit'>,
  owner: Owner,
  id: string,
): Promise<boolean> {
  const event = await findOwnEvent({ stores }, owner, id);
  if (event === null) return false;
  const { type } = event;
  const line = { act: 'event.sent', ...owner, target: id, after: { type } } as const;
  await withAuditLine(audit, line, () => redeliveries.one(id));
  return true;
}

/** @throws ServiceError `webhook_not_set` */
export async function countFailedEvents(
  { redeliveries, ...deps }: Pick<SendDeps, 'redeliveries' | 'stores' | 'now'>,
  owner: Owner,
  from: string,
): Promise<number> {
  const now = await accountNow(deps, owner);
  return (await redeliveries.count(selectFailed(owner, from, now))).found;
}

const activeSends = new Set<string>();

/**
 * Sends in the background the events whose delivery failed since a day. If the process ends first,
 * a repeat sends the rest.
 */
export async function sendFailedEvents(
  { redeliveries, audit, stores, now, log }: SendDeps,
  owner: Owner,
  from: string,
): Promise<void> {
  const name = `${owner.account_id} ${owner.livemode}`;
  if (activeSends.has(name)) return;
  activeSends.add(name);
  const after = { since: from, delivery: 'exhausted' };
  const line = { act: 'event.sent', ...owner, target: null, after } as const;
  try {
    await auditRequest(audit, line);
  } catch (error) {
    activeSends.delete(name);
    throw error;
  }
  const send = async () => {
    const until = await accountNow({ stores, now }, owner);
    return await redeliveries.all(selectFailed(owner, from, until));
  };
  void withOutcomeLine(audit, line, send, ({ sent, skipped }) => ({ sent, skipped }))
    .catch((err) => log.warn({ err }, 'failed events were not all sent again'))
    .finally(() => activeSends.delete(name));
}

function selectFailed(owner: Owner, from: string, now: Date): ResendFilter {
  const since = startOfDay(from) ?? '';
  return { ...owner, since, until: now.toISOString(), statuses: ['exhausted'] };
}

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
      try {
        await redeliverEvent(deps, row.event_id, { endpoint_id: row.endpoint_id });
        total.sent += 1;
      } catch (error) {
        const code = error instanceof ServiceError ? error.code : '';
        if (!SKIPPED.includes(code)) throw new RedeliveryStopped(error, total.sent, row.position);
        total.skipped += 1;
      }
      onProgress(total);
      await pause;
    }
    after = page.at(-1);
    if (after === undefined || page.length < pageSize) return total;
  }
}

/** It is being sent already, or its endpoint was disabled or deleted meanwhile. */
const SKIPPED = ['delivery_running', 'endpoint_disabled', 'webhook_endpoint_not_found'];

export class RedeliveryStopped extends Error {
  readonly sent: number;
  readonly position: string;

  constructor(cause: unknown, sent: number, position: string) {
    super('The redelivery stopped.', { cause });
    this.sent = sent;
    this.position = position;
  }
}
