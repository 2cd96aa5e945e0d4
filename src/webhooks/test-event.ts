import { randomInt, randomUUID } from 'node:crypto';
import { ActFailure } from '../domain/act-failure';
import { positionOf } from '../domain/cursor';
import { type EventType, testData } from '../domain/event';
import type { Sealer } from '../keys/seal';
import type { Stores } from '../store';
import type { DeliveryDocument } from '../store/deliveries';
import { endpointOwner, signingSecret } from '../store/endpoints';
import type { EventDocument } from '../store/events';
import { postEvent, rowOf } from './attempt';
import type { EndpointLimits } from './endpoint-limits';
import type { PostWebhook } from './post';
import type { PostResult } from './post-result';

const TIES = 1_000_000;

export interface TestEventDeps {
  stores: Pick<Stores, 'endpoints' | 'events' | 'deliveries'>;
  sealer: Pick<Sealer, 'open'>;
  limits: EndpointLimits;
  /** Whether sandbox endpoints may be on this machine. Live ones never. */
  allowPrivate: boolean;
  post: PostWebhook;
  now: () => Date;
}

/** Wish for a test event, from one account in one environment. */
export interface TestEventWish {
  account_id: string;
  livemode: boolean;
  type: EventType;
  request_id: string;
}

/**
 * Sends a test event: signed and kept as any other, with one attempt. It is kept first, so that a
 * process which dies leaves an event without an attempt, and never an attempt that nobody knows of.
 * @see docs/webhooks.md#test-events
 * @returns the attempt with the receiver's answer
 * @throws ActFailure `webhook_not_set`; `endpoint_busy` while other tests wait for its answer
 */
export async function sendTestEvent(
  deps: TestEventDeps,
  { account_id, livemode, type, request_id }: TestEventWish,
): Promise<DeliveryDocument> {
  const { stores, now } = deps;
  const owner = endpointOwner(account_id, livemode);
  const endpoint = await stores.endpoints.get(account_id, livemode);
  const sealed = endpoint === null ? undefined : signingSecret(endpoint, now());
  if (endpoint === null || sealed === undefined) {
    throw new ActFailure('webhook_not_set', 'Save an endpoint first.');
  }
  const secret = await deps.sealer.open(sealed, owner);
  const turn = deps.limits.admit(owner);
  if (!turn.admitted) {
    throw new ActFailure('endpoint_busy', 'Another test waits for an answer. Try again soon.');
  }
  let result: PostResult | undefined;
  try {
    const event = testEvent({ account_id, livemode, type, request_id }, now());
    await stores.events.insertTest(event);
    const atMs = now().getTime();
    const { url } = endpoint;
    const allowPrivate = deps.allowPrivate && !livemode;
    result = await postEvent(deps.post, { event, url, secret, atMs, allowPrivate });
    const delivery = { event_id: event._id, run: 0, request_id };
    const row = rowOf(delivery, { attempt: 1, url, atMs, result, nextAtMs: null });
    await stores.deliveries.keepOnly(row);
    return row;
  } finally {
    turn.leave(result);
  }
}

function testEvent({ type, ...owner }: TestEventWish, at: Date): EventDocument {
  const id = `evt_${randomUUID()}`;
  const created = at.toISOString();
  const resource_id = randomUUID();
  const data = testData(type, () => resource_id);
  const { livemode } = owner;
  return {
    ...owner,
    _id: id,
    type,
    created,
    resource_id,
    position: positionOf(at.getTime(), randomInt(TIES)),
    data,
    body: JSON.stringify({ id, type, created, livemode, data }),
    // Ended from the start: no other delivery takes it up.
    delivery: { status: 'exhausted', attempts: 0, next_attempt_at: null, run: 0 },
  };
}
