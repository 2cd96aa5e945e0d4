import type { Client } from '@temporalio/client';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { WEBHOOK_QUEUE } from '../../domain/task-queues';
import { firstDeliveryStatus, webhookWorkflowId } from '../../domain/webhook/event';
import type { Stores } from '../../store';
import { buildDelivery, type DeliveryRow } from '../../store/deliveries';
import type { Endpoint } from '../../store/endpoints';
import type { EventDocument } from '../../store/events';
import { withTimeout } from '../../temporal/deadline';
import { getWorkflowStatus } from '../../temporal/status';
import { accountNow } from '../merchants/clock';
import { redeliver } from './deliveries';
import { findEvent } from './list';

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
export async function findEnabled(
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
  await getWorkflowStatus(temporal, webhookWorkflowId(event._id));
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
