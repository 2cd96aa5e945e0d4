import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { ClientSession } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../base/mongo';
import { omitUndefined } from '../domain/defined';
import type { EventType } from '../domain/webhook/event';
import { CACHE_MS } from '../store/cache';
import {
  type EndpointDocument,
  type EndpointSetting,
  endpointOwner,
  signingSecret,
} from '../store/endpoints';
import type { ActDeps, Owner } from './deps';

const SECRET_BYTES = 32;
const RACES_MAX = 3;
const HOUR_MS = 3_600_000;

/** In ms. @see docs/webhooks.md#roll-the-secret */
export const ROLL_DELAYS_MS = { now: 0, '1h': HOUR_MS, '24h': 24 * HOUR_MS } as const;
export type RollDelay = keyof typeof ROLL_DELAYS_MS;

export type EndpointDeps = Omit<ActDeps, 'payers'>;

export interface ShownEndpoint {
  url: string;
  signing_secret: string;
  /** Absent when all are sent. */
  enabled_events?: EventType[];
}

export interface EndpointRequest {
  /** Accepted by `checkWebhookUrl`. */
  url: string;
  /** Unchanged when undefined. */
  events?: readonly EventType[] | 'all' | undefined;
  /** Whether somebody gets to see the secret. */
  showsSecret: boolean;
}

/** @see docs/decisions.md#keys */
export function makeSigningSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64url')}`;
}

export type EndpointSummary = NonNullable<Awaited<ReturnType<typeof getEndpoint>>>;

/** Reads the endpoint. All events are sent without `enabled_events`; `next_active_from`: a roll. */
export async function getEndpoint(
  { stores, now }: Pick<EndpointDeps, 'stores' | 'now'>,
  { account_id, livemode }: Owner,
) {
  const endpoint = await stores.endpoints.get(account_id, livemode);
  if (endpoint === null) return null;
  const { url, enabled_events, secrets } = endpoint;
  const next = secrets.slice(1).find(({ active_from }) => active_from > now().toISOString());
  return { url, enabled_events, next_active_from: next?.active_from };
}

/**
 * Registers the endpoint or changes its URL; an existing secret stays. It returns when every
 * process applies the change.
 * @throws DecryptionError when no key decrypts the current secret; then nothing changes
 */
export async function setEndpoint(
  deps: EndpointDeps,
  owner: Owner,
  { url, events, showsSecret }: EndpointRequest,
): Promise<ShownEndpoint> {
  const { account_id, livemode } = owner;
  const before = await deps.stores.endpoints.get(account_id, livemode);
  if (before !== null) await decryptCurrent(deps, owner, before);
  // Before the first start of the service, no index makes the endpoint unique.
  await deps.stores.endpoints.ensureIndexes();
  const endpoint = await setWithRetry(deps, {
    account_id,
    livemode,
    url,
    enabled_events: events,
    sealed: await deps.encrypter.encrypt(makeSigningSecret(), endpointOwner(account_id, livemode)),
    now: deps.now(),
  });
  if (before !== null) await waitForCaches();
  // A new secret is shown by its `webhook.set` line.
  if (before !== null && showsSecret) {
    await deps.audit({ act: 'webhook.secret_shown', account_id, livemode, target: null });
  }
  return await presentEndpoint(deps, owner, endpoint);
}

/**
 * Creates a secret that starts to sign in `afterMs`; until then the current one signs. It returns
 * when every process applies the change.
 * @returns null when there is no endpoint
 */
export async function rollSecret(
  deps: EndpointDeps,
  { account_id, livemode }: Owner,
  afterMs: number,
): Promise<(ShownEndpoint & { active_from: string }) | null> {
  const secret = makeSigningSecret();
  const now = deps.now();
  const ciphertext = await deps.encrypter.encrypt(secret, endpointOwner(account_id, livemode));
  const active_from = new Date(now.getTime() + afterMs).toISOString();
  const rolledEndpoint = await inTransaction(deps.mongo, async (session) => {
    const request = { account_id, livemode, sealed: ciphertext, now, afterMs };
    const endpoint = await deps.stores.endpoints.roll(request, session);
    if (endpoint === null) return null;
    const line = { act: 'webhook.rolled', account_id, livemode, target: null } as const;
    await deps.audit({ ...line, after: { active_from } }, session);
    return endpoint;
  });
  if (rolledEndpoint === null) return null;
  await waitForCaches();
  return { url: rolledEndpoint.url, signing_secret: secret, active_from };
}

/**
 * Returns the current secret and, during a roll, the next one. The audit log records that the
 * secret was shown.
 */
export async function showEndpoint(
  deps: EndpointDeps,
  owner: Owner,
): Promise<(ShownEndpoint & { next_secret?: string; next_active_from?: string }) | null> {
  const { account_id, livemode } = owner;
  const endpoint = await deps.stores.endpoints.get(account_id, livemode);
  if (endpoint === null) return null;
  await deps.audit({ act: 'webhook.secret_shown', account_id, livemode, target: null });
  const view = await presentEndpoint(deps, owner, endpoint);
  const next = endpoint.secrets.at(-1);
  if (next === undefined || next.active_from <= deps.now().toISOString()) return view;
  const next_secret = await deps.encrypter.decrypt(
    next.sealed,
    endpointOwner(account_id, livemode),
  );
  return { ...view, next_secret, next_active_from: next.active_from };
}

/** Workers deliver to a cached endpoint. */
async function waitForCaches(): Promise<void> {
  await wait(CACHE_MS);
}

async function presentEndpoint(deps: EndpointDeps, owner: Owner, endpoint: EndpointDocument) {
  const { url, enabled_events } = endpoint;
  return omitUndefined({
    url,
    signing_secret: await decryptCurrent(deps, owner, endpoint),
    enabled_events,
  });
}

async function decryptCurrent(
  { encrypter, now }: EndpointDeps,
  { account_id, livemode }: Owner,
  endpoint: EndpointDocument,
): Promise<string> {
  // By the clock of this process the first secret may not be active yet; it signs nevertheless.
  const ciphertext = signingSecret(endpoint, now()) ?? endpoint.secrets[0]?.sealed;
  if (ciphertext === undefined) throw new Error('The endpoint has no signing secret.');
  return await encrypter.decrypt(ciphertext, endpointOwner(account_id, livemode));
}

/** When two calls register the endpoint at once, the second finds the first's secret. */
async function setWithRetry(deps: EndpointDeps, setting: EndpointSetting) {
  for (let race = 1; ; race += 1) {
    try {
      return await inTransaction(deps.mongo, (session) => setAudited(deps, setting, session));
    } catch (error) {
      if (race === RACES_MAX || !isDuplicateKey(error, 'account_environment')) throw error;
    }
  }
}

async function setAudited(
  { stores, audit }: EndpointDeps,
  setting: EndpointSetting,
  session: ClientSession,
): Promise<EndpointDocument> {
  const { account_id, livemode } = setting;
  const before = await stores.endpoints.get(account_id, livemode, session);
  const after = await stores.endpoints.set(setting, session);
  const line = { act: 'webhook.set', account_id, livemode, target: null } as const;
  await audit(
    { ...line, before: before && toAuditFields(before), after: toAuditFields(after) },
    session,
  );
  return after;
}

function toAuditFields({ url, enabled_events }: EndpointDocument) {
  return { url, events: enabled_events ?? 'all' };
}
