import { randomInt } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { eventId } from '../../src/base/ids';
import type { CallbackResource } from '../../src/domain/banks/callback';
import { buildPosition, TIES } from '../../src/domain/cursor';
import {
  type EventType,
  firstDeliveryStatus,
  type Subscriber,
} from '../../src/domain/events/event';
import type { RecordedEvents } from '../../src/service/events/deliveries';
import type { Stores } from '../../src/store';
import { buildDelivery } from '../../src/store/deliveries';
import type { EventDocument } from '../../src/store/events';

export interface EventSource {
  resource: CallbackResource;
  resource_id: string;
  account_id: string;
  livemode: boolean;
  at: string;
  data: Record<string, string>;
  request_id: string;
  transitions: readonly { type: EventType; transition: number }[];
}

/** Position within one millisecond, by default a random one. */
export function positionAt(at: string, tie = randomInt(TIES - 1)): string {
  return buildPosition(Date.parse(at), tie);
}

/**
 * Freezes the body of each event, and fixes its deliveries.
 * @param subscribers endpoints, oldest first
 * @see docs/webhooks.md#what-is-posted
 */
export function buildEvents(
  source: EventSource,
  subscribers: readonly Subscriber[],
): RecordedEvents {
  const { account_id, livemode, at, data, request_id, resource, resource_id } = source;
  // Those of one millisecond are listed in their order.
  const base = randomInt(TIES - source.transitions.length);
  const events = source.transitions.map(({ type, transition }, offset): EventDocument => {
    const id = eventId(resource, resource_id, transition);
    return {
      _id: id,
      account_id,
      livemode,
      type,
      created: at,
      resource_id,
      position: positionAt(at, base + offset),
      data,
      body: JSON.stringify({ id, type, created: at, livemode, data }),
      request_id,
      order: 0,
    };
  });
  const deliveries = events.flatMap((event) =>
    subscribers.map((subscriber) =>
      buildDelivery(event, subscriber.endpoint_id, firstDeliveryStatus(subscriber, event.type)),
    ),
  );
  return { events, deliveries };
}

export async function insertEvents(
  stores: Pick<Stores, 'events' | 'deliveries'>,
  { events, deliveries }: RecordedEvents,
  session: ClientSession,
): Promise<void> {
  if (events.length > 0) await stores.events.insert(events, session);
  if (deliveries.length > 0) await stores.deliveries.insert(deliveries, session);
}

/** @returns endpoints, oldest first */
export async function readSubscribers(
  stores: Pick<Stores, 'endpoints'>,
  account_id: string,
  livemode: boolean,
): Promise<Subscriber[]> {
  const endpoints = await stores.endpoints.listCached(account_id, livemode);
  return endpoints.map(({ endpoint_id, enabled_events, disabled_reason }) => ({
    endpoint_id,
    wants: enabled_events ?? 'all',
    isDisabled: disabled_reason !== undefined,
  }));
}

/** @returns none while crypto is disabled */
export async function readCryptoSubscribers(
  stores: Pick<Stores, 'endpoints' | 'accounts'>,
  account_id: string,
  livemode: boolean,
): Promise<Subscriber[]> {
  const subscribers = await readSubscribers(stores, account_id, livemode);
  const account = await stores.accounts.getCached(account_id);
  if (account?.crypto === true) return subscribers;
  return subscribers.map((subscriber) => ({ ...subscriber, wants: [] }));
}
