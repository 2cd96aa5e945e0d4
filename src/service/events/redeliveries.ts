import type { Logger } from '../../base/log';
import { WEBHOOK_QUEUE } from '../../domain/task-queues';
import type { ResendFilter } from '../../store/deliveries';
import { withTimeout } from '../../temporal/deadline';
import type { ActDeps, Owner } from '../deps';
import { accountNow } from '../merchants/clock';
import { auditRequest, withAuditLine, withOutcomeLine } from '../operators/audit/log';
import { startOfDay } from '../paging';
import { type DeliveryStarter, type RecordedEvents, startDeliveries } from './deliveries';
import { findOwnEvent } from './list';
import { type RedeliverDeps, redeliverEvent } from './redeliver';
import {
  countSelected,
  redeliverAll,
  type SelectionCount,
  type SendTotals,
} from './redeliver-many';

export interface Redeliveries {
  /** @throws ServiceError as `redeliverEvent` */
  one: (eventId: string) => Promise<void>;
  /**
   * @param endpoint_id undefined: all that want the event
   * @throws ServiceError as `redeliverEvent`
   */
  toSubscribers: (eventId: string, endpoint_id: string | undefined) => Promise<void>;
  /** Starts the first delivery. @throws ServiceError `temporal_unavailable` */
  start: (recorded: RecordedEvents) => Promise<void>;
  /** @throws ServiceError `webhook_not_set` */
  count: (filter: ResendFilter) => Promise<SelectionCount>;
  /** @throws RedeliveryStopped */
  all: (filter: ResendFilter) => Promise<SendTotals>;
}

export function createRedeliveries(deps: RedeliverDeps): Redeliveries {
  return {
    one: async (eventId) => {
      await redeliverEvent(deps, eventId);
    },
    toSubscribers: async (eventId, endpoint_id) => {
      await redeliverEvent(deps, eventId, { endpoint_id, orOldest: false });
    },
    start: (recorded) => startInTime(deps, recorded),
    count: (filter) => countSelected(deps, filter),
    all: (filter) => redeliverAll(deps, filter, () => undefined),
  };
}

async function startInTime(
  { temporal, webhookQueue = WEBHOOK_QUEUE }: Pick<RedeliverDeps, 'temporal' | 'webhookQueue'>,
  recorded: RecordedEvents,
): Promise<void> {
  const starter: DeliveryStarter = { temporal, webhookQueue };
  await withTimeout(temporal, () => startDeliveries(starter, recorded));
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
