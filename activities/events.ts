import { randomInt } from 'node:crypto';
import type { CallbackResource } from '../src/domain/callback';
import { positionOf } from '../src/domain/cursor';
import { type EventType, firstDeliveryStatus, type Subscription } from '../src/domain/event';
import { eventId } from '../src/ids';
import type { Stores } from '../src/store';
import type { EventDocument } from '../src/store/events';

/** Moves made at once, as their events tell of them. */
export interface EventSource {
  resource: CallbackResource;
  resource_id: string;
  account_id: string;
  livemode: boolean;
  /** ISO 8601, ms. */
  at: string;
  data: Record<string, string>;
  request_id: string;
  /** In order; `version` is the resource's after the move. */
  moves: readonly { type: EventType; version: number }[];
}

const TIES = 1_000_000;

/** A random place among the rows of one millisecond; later rows of one write come after it. */
export function positionAt(at: string, offset: number, base: number): string {
  return positionOf(Date.parse(at), (base + offset) % TIES);
}

export function tieBase(room: number): number {
  return randomInt(TIES - room);
}

/** The event documents of moves; each body is frozen here. @see docs/webhooks.md#what-is-posted */
export function eventsOf(source: EventSource, subscription: Subscription): EventDocument[] {
  const { account_id, livemode, at, data, request_id, resource, resource_id } = source;
  const base = tieBase(source.moves.length);
  return source.moves.map(({ type, version }, offset) => {
    const id = eventId(resource, resource_id, version);
    const status = firstDeliveryStatus(subscription, type);
    return {
      _id: id,
      account_id,
      livemode,
      type,
      created: at,
      resource_id,
      position: positionAt(at, offset, base),
      data,
      body: JSON.stringify({ id, type, created: at, livemode, data }),
      request_id,
      delivery: {
        status,
        attempts: 0,
        next_attempt_at: status === 'pending' ? at : null,
        run: 0,
      },
    };
  });
}

/** Reads which events of this account and environment have somewhere to go now. */
export async function subscriptionOf(
  stores: Pick<Stores, 'endpoints'>,
  account_id: string,
  livemode: boolean,
): Promise<Subscription> {
  const endpoint = await stores.endpoints.known(account_id, livemode);
  return endpoint === null ? null : (endpoint.enabled_events ?? 'all');
}

/** Reads the same of crypto events, which go out only while crypto is enabled on the account. */
export async function cryptoSubscriptionOf(
  stores: Pick<Stores, 'endpoints' | 'accounts'>,
  account_id: string,
  livemode: boolean,
): Promise<Subscription> {
  const subscription = await subscriptionOf(stores, account_id, livemode);
  const account = await stores.accounts.known(account_id);
  return subscription !== null && account?.crypto !== true ? [] : subscription;
}
