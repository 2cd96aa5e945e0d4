import { randomInt } from 'node:crypto';
import { eventId } from '../../src/base/ids';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { buildPosition, TIES } from '../../src/domain/cursor';
import {
  type EventType,
  firstDeliveryStatus,
  type Subscription,
} from '../../src/domain/webhook/event';
import type { Stores } from '../../src/store';
import type { EventDocument } from '../../src/store/events';

/** Transitions of one write, for their events. */
export interface EventSource {
  resource: CallbackResource;
  resource_id: string;
  account_id: string;
  livemode: boolean;
  /** ISO 8601, ms. */
  at: string;
  data: Record<string, string>;
  request_id: string;
  /** In order; `version` is the resource's after the transition. */
  transitions: readonly { type: EventType; version: number }[];
}

/** Builds a random list position within one millisecond. */
export function positionAt(at: string, offset: number, base: number): string {
  return buildPosition(Date.parse(at), (base + offset) % TIES);
}

export function tieBase(count: number): number {
  return randomInt(TIES - count);
}

/** Freezes the body of each event. @see docs/webhooks.md#what-is-posted */
export function buildEvents(source: EventSource, subscription: Subscription): EventDocument[] {
  const { account_id, livemode, at, data, request_id, resource, resource_id } = source;
  const base = tieBase(source.transitions.length);
  return source.transitions.map(({ type, version }, offset) => {
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
      order: 0,
      delivery: {
        status,
        attempts: 0,
        next_attempt_at: status === 'pending' ? at : null,
        run: 0,
      },
    };
  });
}

/** Reads which events have an endpoint. */
export async function readSubscription(
  stores: Pick<Stores, 'endpoints'>,
  account_id: string,
  livemode: boolean,
): Promise<Subscription> {
  const endpoint = await stores.endpoints.getCached(account_id, livemode);
  return endpoint === null ? null : (endpoint.enabled_events ?? 'all');
}

/** Reads which crypto events have an endpoint: none while crypto is disabled. */
export async function readCryptoSubscription(
  stores: Pick<Stores, 'endpoints' | 'accounts'>,
  account_id: string,
  livemode: boolean,
): Promise<Subscription> {
  const subscription = await readSubscription(stores, account_id, livemode);
  const account = await stores.accounts.getCached(account_id);
  return subscription !== null && account?.crypto !== true ? [] : subscription;
}
