import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Logger } from '../../base/log';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import {
  type DeliveryStatus,
  firstDeliveryStatus,
  webhookWorkflowId,
} from '../../domain/events/event';
import { WEBHOOK_QUEUE } from '../../domain/task-queues';
import type { Stores } from '../../store';
import {
  buildDelivery,
  type DeliveryRow,
  type ResendFilter,
  type ResendPlace,
} from '../../store/deliveries';
import type { Endpoint } from '../../store/endpoints';
import type { EventDocument } from '../../store/events';
import { withTimeout } from '../../temporal/deadline';
import { getWorkflowStatus } from '../../temporal/status';
import type { ActDeps, Owner } from '../access';
import { accountNow } from '../merchants/clock';
import { auditRequest, withAuditLine, withOutcomeLine } from '../operators/audit/log';
import { startOfDay } from '../paging';
import { type RecordedEvents, redeliver, startDeliveries } from './deliveries';
import { findEvent, findOwnEvent } from './list';

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

/** Longer than Temporal waits for a lost worker before another one answers. */
const ANSWER_MS_MAX = 10_000;

export interface RedeliverDeps {
  stores: Pick<Stores, 'accounts' | 'events' | 'endpoints' | 'deliveries'>;
  temporal: Client;
  now: () => Date;
  webhookQueue?: string;
}

interface Choice {
  /** Absent: all enabled endpoints that want the type. */
  endpoint_id?: string | undefined;
  /** The oldest enabled one gets it when none wants the type. */
  orOldest?: boolean;
}

/**
 * Sends an event again, delivered or not, with the next run number and all attempts, to the
 * endpoint as it is now. It replaces a waiting delivery to it, and no other.
 * @throws ServiceError `event_not_found`, `webhook_not_set`, `webhook_endpoint_not_found`,
 * `endpoint_disabled`, `temporal_unavailable`; `delivery_running` when another redelivery started
 * first
 */
export async function redeliverEvent(
  deps: RedeliverDeps,
  id: string,
  { endpoint_id, orOldest = true }: Choice = {},
): Promise<DeliveryRow[]> {
  const event = await findEvent(deps.stores, id);
  const enabled = await findEnabled(deps.stores, event, endpoint_id);
  const isWanted = ({ enabled_events }: Endpoint) => {
    const wants = enabled_events ?? 'all';
    const status = firstDeliveryStatus({ wants, isDisabled: false }, event.type);
    return endpoint_id !== undefined || status === 'pending';
  };
  const wanting = enabled.filter(isWanted);
  const targets = wanting.length === 0 && orOldest ? enabled.slice(0, 1) : wanting;
  const rows: DeliveryRow[] = [];
  for (const target of targets) {
    try {
      rows.push(await sendTo(deps, event, target.endpoint_id));
    } catch (error) {
      // It is being sent to this endpoint; the others still get it.
      if (!isRunning(error) || targets.length === 1) throw error;
    }
  }
  return rows;
}

/** @returns those of the environment, oldest first, or the one with the id */
async function findEnabled(
  { endpoints }: Pick<Stores, 'endpoints'>,
  { account_id, livemode }: Pick<EventDocument, 'account_id' | 'livemode'>,
  endpoint_id: string | undefined,
): Promise<Endpoint[]> {
  const all = await endpoints.list(account_id, livemode);
  const chosen = all.filter((row) => endpoint_id === undefined || row.endpoint_id === endpoint_id);
  const enabled = chosen.filter(({ disabled_reason }) => disabled_reason === undefined);
  if (enabled.length > 0) return enabled;
  if (chosen.length > 0) {
    throw new ServiceError('endpoint_disabled', 'The endpoint is disabled: enable it first.');
  }
  if (endpoint_id !== undefined && all.length > 0) {
    throw new ServiceError('webhook_endpoint_not_found', `There is no endpoint ${endpoint_id}.`);
  }
  const env = toEnv(livemode);
  throw new ServiceError(
    'webhook_not_set',
    `Nothing to send it to: no ${env} webhook endpoint is registered for ${account_id}.`,
  );
}

async function sendTo(
  { temporal, webhookQueue = WEBHOOK_QUEUE, ...deps }: RedeliverDeps,
  event: EventDocument,
  endpoint_id: string,
): Promise<DeliveryRow> {
  // First, so an outage leaves the delivery unchanged.
  await withTimeout(temporal, () => getWorkflowStatus(temporal, webhookWorkflowId(event._id)));
  const { deliveries } = deps.stores;
  const before = await deliveries.addOnce(buildDelivery(event, endpoint_id, 'no_endpoint'));
  // Later, `pending` could overwrite the outcome of a finished delivery.
  const now = await accountNow(deps, event);
  const reserved = await deliveries.reserveRun(before, now.toISOString());
  if (reserved === null) {
    const message = `Another redelivery of ${event._id} started at the same moment and is still running.`;
    throw new ServiceError('delivery_running', message);
  }
  try {
    const call = () => redeliver({ temporal, webhookQueue }, event, reserved);
    await withTimeout(temporal, call, ANSWER_MS_MAX);
  } catch (error) {
    // Safe even if it did start: each attempt records the state of the delivery.
    await deliveries.releaseRun(reserved, before);
    throw error;
  }
  return reserved;
}

export function isRunning(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'delivery_running';
}
