import { randomInt, randomUUID } from 'node:crypto';
import { buildPosition, TIES } from '../../domain/cursor';
import { ServiceError } from '../../domain/errors';
import { buildTestData, type EventType } from '../../domain/webhook/event';
import type { Encrypter } from '../../encryption/encrypter';
import type { Stores } from '../../store';
import type { Audit } from '../../store/audit';
import type { DeliveryDocument } from '../../store/deliveries';
import { endpointOwner, signingSecret } from '../../store/endpoints';
import type { EventDocument } from '../../store/events';
import { postEvent, toRow } from '../../webhooks/attempt';
import type { EndpointLimits } from '../../webhooks/endpoint-limits';
import type { PostWebhook } from '../../webhooks/post';
import type { PostResult } from '../../webhooks/post-result';

export interface TestEventDeps {
  stores: Pick<Stores, 'endpoints' | 'events' | 'deliveries'>;
  encrypter: Pick<Encrypter, 'decrypt'>;
  limits: EndpointLimits;
  /** Whether sandbox endpoints may be on this machine. Live ones never. */
  allowPrivate: boolean;
  post: PostWebhook;
  audit: Audit;
  now: () => Date;
}

export interface TestEventRequest {
  account_id: string;
  livemode: boolean;
  type: EventType;
  request_id: string;
}

/**
 * Sends a test event with one attempt. It is stored first: no attempt lacks its event.
 * @see docs/webhooks.md#test-events
 * @throws ServiceError `webhook_not_set`; `endpoint_busy` while other tests wait for its answer
 */
export async function sendTestEvent(
  deps: TestEventDeps,
  { account_id, livemode, type, request_id }: TestEventRequest,
): Promise<DeliveryDocument> {
  const { stores, now } = deps;
  const owner = endpointOwner(account_id, livemode);
  const endpoint = await stores.endpoints.get(account_id, livemode);
  const ciphertext = endpoint === null ? undefined : signingSecret(endpoint, now());
  if (endpoint === null || ciphertext === undefined) {
    throw new ServiceError('webhook_not_set', 'Save an endpoint first.');
  }
  const secret = await deps.encrypter.decrypt(ciphertext, owner);
  const admission = deps.limits.admit(owner);
  if (!admission.admitted) {
    throw new ServiceError('endpoint_busy', 'Another test waits for an answer. Try again soon.');
  }
  let result: PostResult | undefined;
  try {
    const event = buildTestEvent({ account_id, livemode, type, request_id }, now());
    await stores.events.insertTest(event);
    const atMs = now().getTime();
    const { url } = endpoint;
    const allowPrivate = deps.allowPrivate && !livemode;
    result = await postEvent(deps.post, { event, url, secret, atMs, allowPrivate });
    const row = toRow(
      { event_id: event._id, run: 0 },
      { attempt: 1, url, atMs, result, nextAtMs: null },
    );
    await stores.deliveries.addOnlyAttempt(row);
    const line = { act: 'event.sent', account_id, livemode, target: event._id } as const;
    await deps.audit({ ...line, after: { type, test: true, outcome: row.outcome } });
    return row;
  } finally {
    admission.leave(result);
  }
}

function buildTestEvent({ type, ...owner }: TestEventRequest, at: Date): EventDocument {
  const id = `evt_${randomUUID()}`;
  const created = at.toISOString();
  const resource_id = randomUUID();
  const data = buildTestData(type, () => resource_id);
  const { livemode } = owner;
  return {
    ...owner,
    _id: id,
    type,
    created,
    resource_id,
    position: buildPosition(at.getTime(), randomInt(TIES)),
    data,
    body: JSON.stringify({ id, type, created, livemode, data }),
    order: 0,
    // A final status, so no other delivery sends it.
    delivery: { status: 'exhausted', attempts: 0, next_attempt_at: null, run: 0 },
  };
}
