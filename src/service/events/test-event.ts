import { randomInt, randomUUID } from 'node:crypto';
import { buildPosition, TIES } from '../../domain/cursor';
import { ServiceError } from '../../domain/errors';
import { buildTestData, type EventType } from '../../domain/events/event';
import type { Encrypter } from '../../encryption/encrypter';
import type { Stores } from '../../store';
import type { Audit } from '../../store/audit';
import { buildDelivery, type DeliveryAttempt } from '../../store/deliveries';
import { type Endpoint, type EndpointKey, secretOwner, signingSecret } from '../../store/endpoints';

import type { EventDocument } from '../../store/events';
import { postEvent, toRow } from '../../webhooks/attempt';
import type { EndpointLimits } from '../../webhooks/endpoint-limits';
import type { PostWebhook } from '../../webhooks/post';
import type { PostResult } from '../../webhooks/post-result';
import { accountNow } from '../merchants/clock';
import type { ListedEvent } from './list';

export interface TestEventDeps {
  stores: Pick<Stores, 'accounts' | 'endpoints' | 'events' | 'deliveries'>;
  encrypter: Pick<Encrypter, 'decrypt'>;
  limits: EndpointLimits;
  /** Sandbox endpoints on this machine; live ones never. */
  allowPrivate: boolean;
  post: PostWebhook;
  audit: Audit;
  now: () => Date;
}

interface TestEventRequest extends EndpointKey {
  type: EventType;
  request_id: string;
}

/**
 * Waits for the response to one attempt. The event is stored first: no attempt lacks its event.
 * @see docs/webhooks.md#test-events
 * @throws ServiceError `webhook_not_set`; `endpoint_disabled`; `endpoint_busy` while other tests
 * wait for a response
 */
export async function sendTestEvent(
  deps: TestEventDeps,
  request: TestEventRequest,
): Promise<DeliveryAttempt> {
  const { stores, now } = deps;
  const { account_id, livemode, type } = request;
  const endpoint = await findTestEndpoint(deps, request);
  const ciphertext = signingSecret(endpoint, now());
  if (ciphertext === undefined) throw createNotSetError();
  const secret = await deps.encrypter.decrypt(ciphertext, secretOwner(endpoint));
  const admission = deps.limits.admit(endpoint.endpoint_id);
  if (!admission.admitted) {
    throw new ServiceError('endpoint_busy', 'Another test waits for an answer. Try again soon.');
  }
  let result: PostResult | undefined;
  try {
    // A final status, so no other delivery sends it.
    const at = await accountNow(deps, request);
    const event = buildTestEvent(request, at);
    await insertTest(deps, event, endpoint, 'exhausted');
    const atMs = now().getTime();
    const { url } = endpoint;
    const allowPrivate = deps.allowPrivate && !livemode;
    result = await postEvent(deps.post, { event, url, secret, atMs, allowPrivate });
    const row = toRow(
      { event_id: event._id, endpoint_id: endpoint.endpoint_id, run: 0 },
      { attempt: 1, url, atMs: at.getTime(), result, nextAtMs: null },
    );
    await stores.deliveries.addAttempt(row);
    const line = { act: 'event.sent', account_id, livemode, target: event._id } as const;
    await deps.audit({ ...line, after: { type, test: true, outcome: row.outcome } });
    return row;
  } finally {
    admission.leave(result);
  }
}

/**
 * Records an event for a delivery with one attempt.
 * @throws ServiceError `webhook_not_set`, `endpoint_disabled`
 */
export async function recordTestEvent(
  deps: Pick<TestEventDeps, 'stores' | 'audit' | 'now'>,
  request: TestEventRequest,
): Promise<ListedEvent> {
  const endpoint = await findTestEndpoint(deps, request);
  const event = buildTestEvent(request, await accountNow(deps, request));
  const { account_id, livemode, type } = request;
  const line = { act: 'event.sent', account_id, livemode, target: event._id } as const;
  await deps.audit({ ...line, after: { type, test: true, outcome: 'requested' } });
  return await insertTest(deps, event, endpoint, 'pending');
}

async function insertTest(
  { stores }: Pick<TestEventDeps, 'stores'>,
  event: EventDocument,
  { endpoint_id }: Endpoint,
  status: 'pending' | 'exhausted',
): Promise<ListedEvent> {
  const delivery = buildDelivery(event, endpoint_id, status);
  await stores.events.insert([event]);
  await stores.deliveries.insert([delivery]);
  return { event, deliveries: [delivery] };
}

async function findTestEndpoint(
  { stores }: Pick<TestEventDeps, 'stores'>,
  { account_id, livemode, endpoint_id }: TestEventRequest,
): Promise<Endpoint> {
  const endpoint = await stores.endpoints.find({ account_id, livemode, endpoint_id });
  if (endpoint === null) throw createNotSetError();
  if (endpoint.disabled_reason === undefined) return endpoint;
  throw new ServiceError('endpoint_disabled', 'The endpoint is disabled: enable it first.');
}

function createNotSetError(): ServiceError {
  return new ServiceError('webhook_not_set', 'Save an endpoint first.');
}

function buildTestEvent(
  { type, account_id, livemode, request_id }: TestEventRequest,
  at: Date,
): EventDocument {
  const id = `evt_${randomUUID()}`;
  const created = at.toISOString();
  const resource_id = randomUUID();
  const data = buildTestData(type, () => resource_id);
  return {
    _id: id,
    account_id,
    livemode,
    request_id,
    type,
    created,
    resource_id,
    data,
    order: 0,
    position: buildPosition(at.getTime(), randomInt(TIES)),
    body: JSON.stringify({ id, type, created, livemode, data }),
  };
}
