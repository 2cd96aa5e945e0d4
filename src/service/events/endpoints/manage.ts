import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../../base/mongo';
import { buildPosition, TIES } from '../../../domain/cursor';
import { omitUndefined } from '../../../domain/defined';
import { buildRefusal, notFound, Refusal, ServiceError } from '../../../domain/errors';
import { type EventType, hasFailedTooLong, listEnabledEvents } from '../../../domain/events/event';
import type { AuditFacts } from '../../../domain/operators/audit-log';
import type { Encrypted } from '../../../encryption/encrypter';
import { auditBy } from '../../../store/audit';
import { waitForCaches } from '../../../store/cache';
import type { DeliveryAttempt } from '../../../store/deliveries';
import {
  type Endpoint,
  type EndpointDocument,
  type EndpointKey,
  endpointSlots,
  SLOT_INDEX,
  secretOwner,
  signingSecret,
} from '../../../store/endpoints';
import { checkWebhookUrl, getOrigin } from '../../../webhooks/url';
import type { ActDeps, Owner, ServiceDeps } from '../../access';
import { accountNow } from '../../merchants/clock';
import { notifyOwners } from '../../merchants/mail/outbox';

export type { Endpoint } from '../../../store/endpoints';

/** Concurrent calls may choose the same slot. */
const RACES_MAX = 20;

/** An absent setting stays as it is. */
interface EndpointSettings {
  /** Accepted by `admitEndpointUrl`. */
  url?: string | undefined;
  description?: string | null | undefined;
  events?: readonly EventType[] | 'all' | undefined;
  status?: 'enabled' | 'disabled' | undefined;
}

interface NewEndpoint {
  endpoint_id: string;
  url: string;
  description: string | null;
  events: readonly EventType[] | 'all';
  /** First secret. */
  ciphertext: Encrypted;
}

interface EndpointRequest extends Omit<NewEndpoint, 'endpoint_id' | 'ciphertext'> {
  endpoint_id?: string;
}

export function makeEndpointId(): string {
  return `we_${randomUUID()}`;
}

/**
 * Returns the endpoint with its secret.
 * @throws Refusal 422 `endpoint_limit_reached`; ServiceError `endpoint_exists`
 */
export async function addEndpoint(
  deps: EndpointDeps,
  owner: Owner,
  { endpoint_id = makeEndpointId(), ...settings }: EndpointRequest,
): Promise<{ endpoint: Endpoint; signing_secret: string }> {
  const signing_secret = makeSigningSecret();
  const { account_id, livemode } = owner;
  const place = secretOwner({ account_id, livemode, endpoint_id });
  const ciphertext = await deps.encrypter.encrypt(signing_secret, place);
  await deps.stores.endpoints.ensureIndexes();
  const endpoint = await insertEndpoint(deps, owner, { ...settings, endpoint_id, ciphertext });
  if (endpoint.secrets[0]?.ciphertext !== ciphertext) {
    throw new ServiceError('endpoint_exists', 'This endpoint was added already.');
  }
  return { endpoint, signing_secret };
}

/**
 * Returns the stored endpoint, which may be of an earlier call, when every process sends events to it.
 * @param also further writes of the transaction
 * @throws Refusal 422 `endpoint_limit_reached`
 */
export async function insertEndpoint(
  deps: Pick<EndpointDeps, 'mongo' | 'stores' | 'audit' | 'now'>,
  { account_id, livemode }: Owner,
  { endpoint_id, url, description, events, ciphertext }: NewEndpoint,
  also: (session: ClientSession) => Promise<unknown> = async () => undefined,
): Promise<Endpoint> {
  const { stores, now } = deps;
  const at = await accountNow(deps, { account_id, livemode });
  const document: Omit<EndpointDocument, 'slot'> = {
    ...{ account_id, livemode, endpoint_id },
    position: buildPosition(at.getTime(), randomInt(TIES)),
    ...{ url, description },
    secrets: [{ ciphertext, active_from: now().toISOString() }],
    ...(events === 'all' ? {} : { enabled_events: [...events] }),
    ...{ created_at: at.toISOString(), updated_at: at.toISOString() },
  };
  const insert = async (session: ClientSession) => {
    const others = await stores.endpoints.list(account_id, livemode, session);
    const known = others.find((other) => other.endpoint_id === endpoint_id);
    if (known !== undefined) return { endpoint: known, isFirst: false };
    const slot = findFreeSlot(others);
    const endpoint = await stores.endpoints.insert({ ...document, slot }, session);
    const line = { act: 'webhook.created', account_id, livemode, target: endpoint_id } as const;
    await deps.audit({ ...line, after: toAuditFacts(endpoint) }, session);
    await also(session);
    return { endpoint, isFirst: others.length === 0 };
  };
  const { endpoint, isFirst } = await retryRaces(() => inTransaction(deps.mongo, insert));
  // An absence is not cached.
  if (!isFirst) await waitForCaches();
  return endpoint;
}

/** @throws Refusal 422 `endpoint_limit_reached` */
export function findFreeSlot(endpoints: readonly Endpoint[]): number {
  const taken = endpoints.map(({ slot }) => slot);
  const free = endpointSlots().filter((slot) => !taken.includes(slot));
  // Random, so that concurrent calls seldom choose the same.
  const slot = free[randomInt(Math.max(1, free.length))];
  if (slot !== undefined) return slot;
  const message = `An environment has at most ${endpointSlots().length} webhook endpoints: delete one first.`;
  throw new Refusal('endpoint_limit_reached', message);
}

/** Repeats a write that has met another one for its slot. */
async function retryRaces<T>(write: () => Promise<T>): Promise<T> {
  for (let race = 1; ; race += 1) {
    try {
      return await write();
    } catch (error) {
      if (race === RACES_MAX || !isDuplicateKey(error, SLOT_INDEX)) throw error;
    }
  }
}

/** Returns when every process applies the change. @throws Refusal 404 */
export async function changeEndpoint(
  deps: Pick<EndpointDeps, 'mongo' | 'stores' | 'audit' | 'now'>,
  { account_id, livemode }: Owner,
  endpoint_id: string,
  settings: EndpointSettings,
): Promise<Endpoint> {
  const { endpoints } = deps.stores;
  const owner = { account_id, livemode };
  if (Object.values(settings).every((value) => value === undefined)) {
    return await findEndpoint(deps, owner, endpoint_id);
  }
  const { url, description, events, status } = settings;
  const at = (await accountNow(deps, owner)).toISOString();
  const changed = await inTransaction(deps.mongo, async (session) => {
    const before = await findEndpoint(deps, owner, endpoint_id, session);
    const isEnabled = status === 'enabled';
    const isDisabled = status === 'disabled';
    const disabledReason = isDisabled ? (before.disabled_reason ?? 'merchant') : undefined;
    // A new URL, or enabling, resets the failures.
    const isNew = isEnabled || (url !== undefined && url !== before.url);
    const change = omitUndefined({
      ...{ url, description, enabled_events: events },
      disabled_reason: isEnabled ? null : disabledReason,
      failing_since: isNew ? null : undefined,
    });
    const after = await endpoints.update(before, change, at, session);
    if (after === null) throw buildRefusal(notFound('webhook_endpoint'));
    const line = { act: 'webhook.updated', ...owner, target: endpoint_id } as const;
    // Null, unlike an absent fact, says that it is enabled again.
    const { disabled_reason = null } = after;
    const facts = {
      before: toAuditFacts(before),
      after: { ...toAuditFacts(after), disabled_reason },
    };
    await deps.audit({ ...line, ...facts }, session);
    return after;
  });
  await waitForCaches();
  return changed;
}

/**
 * Returns when no process sends events to the endpoint; its deliveries stay in the log.
 * @throws Refusal 404
 */
export async function deleteEndpoint(
  deps: Pick<EndpointDeps, 'mongo' | 'stores' | 'audit'>,
  { account_id, livemode }: Owner,
  endpoint_id: string,
): Promise<Endpoint> {
  const owner = { account_id, livemode };
  const deleted = await inTransaction(deps.mongo, async (session) => {
    const before = await findEndpoint(deps, owner, endpoint_id, session);
    await deps.stores.endpoints.remove(before, session);
    const line = { act: 'webhook.deleted', ...owner, target: endpoint_id } as const;
    await deps.audit({ ...line, before: toAuditFacts(before) }, session);
    return before;
  });
  await waitForCaches();
  return deleted;
}

/** Oldest first. */
export function listEndpoints(
  { stores }: Pick<EndpointDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<Endpoint[]> {
  return stores.endpoints.list(account_id, livemode);
}

/** @throws Refusal 404, also for an id of another account or environment */
export async function findEndpoint(
  { stores }: Pick<EndpointDeps, 'stores'>,
  { account_id, livemode }: Owner,
  endpoint_id: string,
  session?: ClientSession,
): Promise<Endpoint> {
  const key = { account_id, livemode, endpoint_id };
  const endpoint = await stores.endpoints.find(key, session);
  if (endpoint === null) throw buildRefusal(notFound('webhook_endpoint'));
  return endpoint;
}

const SECRET_BYTES = 32;
const HOUR_MS = 3_600_000;

/** ms. @see docs/webhooks.md#roll-the-secret */
export const ROLL_DELAYS_MS = { now: 0, '1h': HOUR_MS, '24h': 24 * HOUR_MS } as const;
export type RollDelay = keyof typeof ROLL_DELAYS_MS;

export type EndpointDeps = Omit<ActDeps, 'payers'>;

/** @see docs/decisions.md#keys */
export function makeSigningSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64url')}`;
}

/**
 * Creates a secret that signs after `afterMs`; until then the current one does. Returns when every
 * process applies it.
 * @returns null when there is no such endpoint
 */
export async function rollEndpoint(
  deps: EndpointDeps,
  { account_id, livemode, endpoint_id }: EndpointKey,
  afterMs: number,
): Promise<{ endpoint: Endpoint; signing_secret: string; active_from: string } | null> {
  const { endpoints } = deps.stores;
  const current = await endpoints.find({ account_id, livemode, endpoint_id });
  if (current === null) return null;
  const secret = makeSigningSecret();
  const now = deps.now();
  const ciphertext = await deps.encrypter.encrypt(secret, secretOwner(current));
  const active_from = new Date(now.getTime() + afterMs).toISOString();
  const updated_at = (await accountNow(deps, { account_id, livemode })).toISOString();
  const endpoint = await inTransaction(deps.mongo, async (session) => {
    const { endpoint_id: target } = current;
    const key = { account_id, livemode, endpoint_id: target };
    const request = { ...key, ciphertext, now, afterMs, updated_at };
    const rolled = await endpoints.roll(request, session);
    if (rolled === null) return null;
    const line = { act: 'webhook.rolled', account_id, livemode, target } as const;
    await deps.audit({ ...line, after: { active_from } }, session);
    return rolled;
  });
  if (endpoint === null) return null;
  await waitForCaches();
  return { endpoint, signing_secret: secret, active_from };
}

export async function decryptCurrent(
  { encrypter, now }: Pick<EndpointDeps, 'encrypter' | 'now'>,
  endpoint: EndpointDocument,
): Promise<string> {
  const ciphertext = signingSecret(endpoint, now());
  if (ciphertext === undefined) throw new Error('The endpoint has no signing secret.');
  return await encrypter.decrypt(ciphertext, secretOwner(endpoint));
}

/** Facts by which `audit verify` knows an endpoint. */
function toAuditFacts({ url, enabled_events, disabled_reason }: EndpointDocument): AuditFacts {
  return { url, events: enabled_events ?? 'all', disabled_reason };
}

/** @see docs/api.md#webhook-endpoints */
export function presentEndpoint(endpoint: Endpoint) {
  const { endpoint_id: id, url, description = null, enabled_events } = endpoint;
  const { disabled_reason = null, livemode, created_at, updated_at } = endpoint;
  return {
    ...{ id, object: 'webhook_endpoint', url, description },
    enabled_events: listEnabledEvents(enabled_events),
    status: disabled_reason === null ? 'enabled' : 'disabled',
    ...{ disabled_reason, livemode, created_at, updated_at },
  };
}

export interface UrlRules {
  /** Sandbox endpoints on this machine; live ones never. */
  allowPrivate: boolean;
  isDenied: (address: string) => boolean;
}

/** @returns the URL to store, or the reason for the merchant */
export function checkEndpointUrl({ allowPrivate, isDenied }: UrlRules, owner: Owner, url: string) {
  return checkWebhookUrl(url, { allowPrivate: allowPrivate && !owner.livemode, isDenied });
}

/** @throws Refusal 400 with a detail for `url` */
export async function admitEndpointUrl(
  rules: UrlRules,
  owner: Owner,
  url: string,
): Promise<string> {
  const check = await checkEndpointUrl(rules, owner, url);
  if (check.ok) return check.url;
  const { message } = check;
  const details = [{ code: 'invalid', field: 'url', message }];
  throw new Refusal('invalid_request', `url: ${message}`, { details });
}

interface HealthDeps extends Pick<ServiceDeps, 'mongo' | 'stores' | 'now'> {
  log: Record<'warn', (fields: { account_id: string; err?: unknown }, message: string) => void>;
}

export interface EndpointHealth {
  /** Never fails: a delivery does not depend on it. */
  note: (endpoint: Endpoint, attempt: DeliveryAttempt) => Promise<void>;
}

/**
 * Disables an endpoint after days without a success. A first attempt notes no failure, which saves
 * a write.
 * @see docs/webhooks.md#an-endpoint-that-keeps-failing
 */
export function createEndpointHealth(deps: HealthDeps): EndpointHealth {
  const { endpoints } = deps.stores;
  return {
    note: async (endpoint, { outcome, attempt, at }) => {
      const { account_id, failing_since, last_success_at = '' } = endpoint;
      try {
        if (outcome === 'delivered') {
          await endpoints.noteSuccess(endpoint, at);
        } else if (failing_since === undefined) {
          if (attempt > 1) await endpoints.noteFailing(endpoint, at);
        } else {
          // Another process may have noted a failure after a later success.
          const since = failing_since > last_success_at ? failing_since : last_success_at;
          if (hasFailedTooLong(since, Date.parse(at))) await disable(deps, endpoint, since, at);
        }
      } catch (err) {
        deps.log.warn({ account_id, err }, 'the health of an endpoint was not noted');
      }
    },
  };
}

async function disable(
  deps: HealthDeps,
  before: Endpoint,
  since: string,
  at: string,
): Promise<void> {
  const { stores, log } = deps;
  const { account_id, livemode, endpoint_id } = before;
  const audit = auditBy(deps, { via: 'service' });
  const isDisabled = await inTransaction(deps.mongo, async (session) => {
    const after = await stores.endpoints.disableFailing(before, since, at, session);
    if (after === null) return false;
    const line = { act: 'webhook.disabled', account_id, livemode, target: endpoint_id } as const;
    await audit({ ...line, before: toAuditFacts(before), after: toAuditFacts(after) }, session);
    const host = getOrigin(before.url);
    const subject = { kind: 'endpoint_disabled', host, since, livemode } as const;
    await notifyOwners(deps, account_id, subject, session);
    return true;
  });
  if (isDisabled) log.warn({ account_id }, 'endpoint disabled after days of failures');
}

interface ShownEndpoint {
  url: string;
  signing_secret: string;
  /** Absent: all. */
  enabled_events?: EventType[];
}

export type EndpointSummary = NonNullable<Awaited<ReturnType<typeof getEndpoint>>>;

interface OldestRequest extends Pick<EndpointSettings, 'events'> {
  /** Accepted by `admitEndpointUrl`. */
  url: string;
  /** Shows the secret of an existing endpoint, too. */
  showsSecret: boolean;
}

/** `next_active_from` appears during a roll. */
export async function getEndpoint(
  { stores, now }: Pick<EndpointDeps, 'stores' | 'now'>,
  { account_id, livemode, endpoint_id }: EndpointKey,
) {
  const endpoint = await stores.endpoints.find({ account_id, livemode, endpoint_id });
  if (endpoint === null) return null;
  const { url, description, enabled_events, disabled_reason, secrets } = endpoint;
  const next = secrets.slice(1).find(({ active_from }) => active_from > now().toISOString());
  return {
    endpoint_id: endpoint.endpoint_id,
    ...{ url, description, enabled_events, disabled_reason },
    next_active_from: next?.active_from,
  };
}

/**
 * Registers the first endpoint, or changes the URL of the oldest; its secret stays. Returns when
 * every process applies it.
 * @throws DecryptionError when no key decrypts the current secret; then nothing changes
 */
export async function setEndpoint(
  deps: EndpointDeps,
  owner: Owner,
  { url, events, showsSecret }: OldestRequest,
): Promise<ShownEndpoint & { isNew: boolean }> {
  const { account_id, livemode } = owner;
  const { endpoints } = deps.stores;
  const before = await endpoints.get(account_id, livemode);
  if (before !== null) await decryptCurrent(deps, before);
  // Before the first start, no index bounds the endpoints.
  await endpoints.ensureIndexes();
  const endpoint_id = makeEndpointId();
  const place = secretOwner({ account_id, livemode, endpoint_id });
  const setting = {
    ...{ account_id, livemode, url, endpoint_id },
    enabled_events: events,
    ciphertext: await deps.encrypter.encrypt(makeSigningSecret(), place),
    now: deps.now(),
    at: (await accountNow(deps, owner)).toISOString(),
  };
  // A concurrent call may register the endpoint first.
  const endpoint = await retryRaces(() =>
    inTransaction(deps.mongo, async (session) => {
      const earlier = await endpoints.get(account_id, livemode, session);
      const set = await endpoints.set(setting, session);
      const line = { act: 'webhook.set', account_id, livemode, target: set.endpoint_id } as const;
      const facts = { before: earlier && toAuditFacts(earlier), after: toAuditFacts(set) };
      await deps.audit({ ...line, ...facts }, session);
      return set;
    }),
  );
  if (before !== null) await waitForCaches();
  // The `webhook.set` line covers a new secret.
  if (before !== null && showsSecret) {
    const line = { act: 'webhook.secret_shown', account_id, livemode } as const;
    await deps.audit({ ...line, target: endpoint.endpoint_id });
  }
  return { ...(await presentShown(deps, endpoint)), isNew: before === null };
}

/** @see rollEndpoint */
export async function rollSecret(
  deps: EndpointDeps,
  owner: EndpointKey,
  afterMs: number,
): Promise<(ShownEndpoint & { active_from: string }) | null> {
  const rolled = await rollEndpoint(deps, owner, afterMs);
  if (rolled === null) return null;
  const { endpoint, signing_secret, active_from } = rolled;
  return { url: endpoint.url, signing_secret, active_from };
}

/** Shows the current secret and, during a roll, the next; the audit log records it. */
export async function showEndpoint(
  deps: EndpointDeps,
  { account_id, livemode, endpoint_id }: EndpointKey,
): Promise<(ShownEndpoint & { next_secret?: string; next_active_from?: string }) | null> {
  const endpoint = await deps.stores.endpoints.find({ account_id, livemode, endpoint_id });
  if (endpoint === null) return null;
  const line = { act: 'webhook.secret_shown', account_id, livemode } as const;
  await deps.audit({ ...line, target: endpoint.endpoint_id });
  const view = await presentShown(deps, endpoint);
  const next = endpoint.secrets.at(-1);
  if (next === undefined || next.active_from <= deps.now().toISOString()) return view;
  const next_secret = await deps.encrypter.decrypt(next.ciphertext, secretOwner(endpoint));
  return { ...view, next_secret, next_active_from: next.active_from };
}

async function presentShown(deps: EndpointDeps, endpoint: Endpoint): Promise<ShownEndpoint> {
  const { url, enabled_events } = endpoint;
  const signing_secret = await decryptCurrent(deps, endpoint);
  return omitUndefined({ url, signing_secret, enabled_events });
}
