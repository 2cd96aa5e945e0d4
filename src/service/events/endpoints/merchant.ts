import { buildRefusal, notFound, Refusal, ServiceError, unavailable } from '../../../domain/errors';
import type { EventType } from '../../../domain/events/event';
import * as wire from '../../../domain/wire/webhook-endpoints';
import type { Actor } from '../../../store/audit';
import { type Endpoint, secretOwner } from '../../../store/endpoints';
import type { IdempotencyRecord } from '../../../store/idempotency';
import type { MerchantDeps, Owner } from '../../access';
import { type CreateRequest, createOnce } from '../../create-once';
import { type Page, type PageQuery, readCursor } from '../../money/read';
import { auditAndNotify, withAuditLine } from '../../operators/audit/log';
import { toPage } from '../../paging';
import { findOwnEvent, getMerchantEvent, presentEvent } from '../list';
import { isRunning, type Redeliveries } from '../redeliveries';
import { recordTestEvent } from '../test-event';
import {
  admitEndpointUrl,
  changeEndpoint,
  decryptCurrent,
  deleteEndpoint,
  findEndpoint,
  findFreeSlot,
  insertEndpoint,
  listEndpoints,
  makeEndpointId,
  makeSigningSecret,
  presentEndpoint,
  ROLL_DELAYS_MS,
  rollEndpoint,
  type UrlRules,
} from './manage';

export interface MerchantEndpointDeps extends MerchantDeps {
  webhookUrls: UrlRules;
  redeliveries: Pick<Redeliveries, 'start' | 'toSubscribers'>;
}

export interface Caller {
  owner: Owner;
  actor: Actor;
  request_id: string;
}

/**
 * @throws Refusal 400 with a detail for `url`; 422 `endpoint_limit_reached`
 * @see docs/api.md#webhook-endpoints
 */
export function createMerchantEndpoint(
  deps: MerchantEndpointDeps,
  request: CreateRequest<wire.CreateWebhookEndpoint>,
  actor: Actor,
) {
  const { account_id, livemode } = request.caller;
  const owner = { account_id, livemode };
  const acting = { ...deps, audit: auditAndNotify(deps, actor) };
  return createOnce(deps, request, {
    operation: wire.createWebhookEndpoint.operation,
    makeId: makeEndpointId,
    accept: async ({ url, description = null, enabled_events }) => {
      const admitted = await admitEndpointUrl(deps.webhookUrls, owner, url);
      // Refuses at once where none is free; the insert chooses the slot.
      findFreeSlot(await listEndpoints(deps, owner));
      const events = enabled_events === undefined ? 'all' : [...new Set(enabled_events)];
      return { webhook_endpoint: { url: admitted, description, events } };
    },
    open: async ({ record }) => {
      const endpoint = await openEndpoint(acting, owner, record);
      const signing_secret = await decryptCurrent(deps, endpoint);
      return { answer: { ...presentEndpoint(endpoint), signing_secret }, isPersonal: true };
    },
  });
}

/**
 * A refusal leaves the key unused. Another call with the key may have inserted the endpoint, which a
 * transaction sees before other reads do.
 */
async function openEndpoint(
  deps: Parameters<typeof insertEndpoint>[0] & Pick<MerchantDeps, 'encrypter'>,
  owner: Owner,
  { resource_id: endpoint_id, request: accepted }: IdempotencyRecord,
): Promise<Endpoint> {
  const { idempotency, endpoints } = deps.stores;
  const known = await endpoints.find({ ...owner, endpoint_id });
  if (known !== null) return known;
  if (accepted === null || !('webhook_endpoint' in accepted)) {
    throw buildRefusal(notFound('webhook_endpoint'));
  }
  const { url, description, events } = accepted.webhook_endpoint;
  // Made here: a rotation of keys does not reach what an idempotency record holds.
  const place = secretOwner({ ...owner, endpoint_id });
  const ciphertext = await deps.encrypter.encrypt(makeSigningSecret(), place);
  const fresh = { url, description, events, endpoint_id, ciphertext };
  try {
    return await insertEndpoint(deps, owner, fresh, (session) =>
      idempotency.markWritten(endpoint_id, session),
    );
  } catch (error) {
    if (error instanceof Refusal) await idempotency.release(endpoint_id);
    throw error;
  }
}

/** Newest first. */
export async function listMerchantEndpoints(
  deps: Pick<MerchantDeps, 'stores'>,
  owner: Owner,
  { limit, created_before }: PageQuery,
): Promise<Page<Endpoint>> {
  const all = (await listEndpoints(deps, owner)).reverse();
  const before = await readCursor(created_before, async ({ after, until }) =>
    all.filter(({ position }) => position > after && position < until),
  );
  const isBefore = ({ position }: Endpoint) => before === undefined || position < before;
  return toPage(all.filter(isBefore), limit, ({ position }) => position);
}

/** @throws Refusal 400 with a detail for `url`; 404 */
export async function updateMerchantEndpoint(
  deps: MerchantEndpointDeps,
  { owner, actor }: Caller,
  id: string,
  { url, enabled_events, ...settings }: wire.UpdateWebhookEndpoint,
): Promise<Endpoint> {
  // An unknown endpoint is a 404, whatever its new URL.
  await findEndpoint(deps, owner, id);
  const admitted =
    url === undefined ? undefined : await admitEndpointUrl(deps.webhookUrls, owner, url);
  const acting = { ...deps, audit: auditAndNotify(deps, actor) };
  const events = enabled_events && [...new Set(enabled_events)];
  return await changeEndpoint(acting, owner, id, { ...settings, url: admitted, events });
}

/** @throws Refusal 404 */
export async function deleteMerchantEndpoint(
  deps: MerchantEndpointDeps,
  { owner, actor }: Caller,
  id: string,
) {
  const acting = { ...deps, audit: auditAndNotify(deps, actor) };
  return { ...presentEndpoint(await deleteEndpoint(acting, owner, id)), deleted: true };
}

/** @throws Refusal 404 */
export async function rollMerchantSecret(
  deps: MerchantEndpointDeps,
  { owner, actor }: Caller,
  endpoint_id: string,
  after: keyof typeof ROLL_DELAYS_MS,
) {
  const acting = { ...deps, audit: auditAndNotify(deps, actor) };
  const key = { account_id: owner.account_id, livemode: owner.livemode, endpoint_id };
  const rolled = await rollEndpoint(acting, key, ROLL_DELAYS_MS[after]);
  if (rolled === null) throw buildRefusal(notFound('webhook_endpoint'));
  return { ...presentEndpoint(rolled.endpoint), signing_secret: rolled.signing_secret };
}

/** @throws Refusal 404; 422 `endpoint_disabled`; 503 */
export async function testMerchantEndpoint(
  deps: MerchantEndpointDeps,
  { owner, actor, request_id }: Caller,
  endpoint_id: string,
  type: EventType,
) {
  const { account_id, livemode } = owner;
  const acting = { ...deps, audit: auditAndNotify(deps, actor) };
  const request = { account_id, livemode, endpoint_id, type, request_id };
  return await toRefusals(async () => {
    const listed = await recordTestEvent(acting, request);
    await deps.redeliveries.start({ events: [listed.event], deliveries: listed.deliveries });
    return presentEvent(listed);
  });
}

/** @throws Refusal 404; 422 `endpoint_disabled`; 503 */
export async function redeliverMerchantEvent(
  deps: MerchantEndpointDeps,
  { owner, actor }: Caller,
  id: string,
  endpoint_id: string | undefined,
) {
  const event = await findOwnEvent(deps, owner, id);
  if (event === null) throw buildRefusal(notFound('event'));
  const { account_id, livemode } = owner;
  const audit = auditAndNotify(deps, actor);
  const after = { type: event.type, endpoint: endpoint_id };
  const line = { act: 'event.sent', account_id, livemode, target: id, after } as const;
  await toRefusals(() =>
    withAuditLine(audit, line, () => deps.redeliveries.toSubscribers(id, endpoint_id)),
  ).catch((error: unknown) => {
    // It is being sent already, or has no receiver.
    const isNobody = error instanceof Refusal && error.code === 'webhook_endpoint_not_found';
    if (!isRunning(error) && !(isNobody && endpoint_id === undefined)) throw error;
  });
  const { deliveries, ...fields } = await getMerchantEvent(deps, owner, id);
  return { ...fields, deliveries: deliveries.map(({ log: _log, ...delivery }) => delivery) };
}

async function toRefusals<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, message } = error;
    if (code === 'endpoint_disabled') throw new Refusal(code, message);
    if (code === 'webhook_not_set' || code === 'webhook_endpoint_not_found') {
      throw buildRefusal(notFound('webhook_endpoint'));
    }
    if (code === 'temporal_unavailable') throw unavailable('The outcome is unknown.', error);
    throw error;
  }
}
