import { randomBytes } from 'node:crypto';
import type { ClientSession, MongoClient } from 'mongodb';
import { defined } from '../domain/defined';
import type { EventType } from '../domain/event';
import type { Sealer } from '../keys/seal';
import { inTransaction, isDuplicateKey } from '../mongo';
import type { Audit } from '../store/audit';
import {
  type EndpointDocument,
  type EndpointSetting,
  type EndpointStore,
  endpointOwner,
  signingSecret,
} from '../store/endpoints';

const SECRET_BYTES = 32;
const RACES_MAX = 3;
const HOUR_MS = 3_600_000;

/** Times, in ms, from which a new secret may sign. @see docs/webhooks.md#roll-the-secret */
export const AFTER_MS = { now: 0, '1h': HOUR_MS, '24h': 24 * HOUR_MS } as const;
export type After = keyof typeof AFTER_MS;

/** Dependencies of acts on an endpoint. */
export interface EndpointDeps {
  mongo: MongoClient;
  endpoints: EndpointStore;
  sealer: Sealer;
  audit: Audit;
  now: () => Date;
}

/** Account and environment of an endpoint. */
export interface EndpointOwner {
  accountId: string;
  livemode: boolean;
}

export interface ShownEndpoint {
  url: string;
  signing_secret: string;
  /** Only where not all are sent. */
  enabled_events?: EventType[];
}

export interface EndpointWish {
  /** As `checkWebhookUrl` admitted it. */
  url: string;
  /** Event types to send; they stay as they are when not given. */
  events?: readonly EventType[] | 'all' | undefined;
}

/** Makes a secret: `whsec_` + 32 random bytes, base64url. @see docs/decisions.md#keys */
export function makeSigningSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64url')}`;
}

/**
 * Registers the endpoint or moves it; a secret that exists stays and is given again.
 * @throws SealError when the present secret was sealed with other keys; then nothing is changed
 */
export async function setEndpoint(
  deps: EndpointDeps,
  owner: EndpointOwner,
  { url, events }: EndpointWish,
): Promise<ShownEndpoint> {
  const { accountId, livemode } = owner;
  const before = await deps.endpoints.get(accountId, livemode);
  if (before !== null) await openCurrent(deps, owner, before);
  // Before the service has ever run, nothing else would hold the endpoint unique.
  await deps.endpoints.ensureIndexes();
  const stored = await settle(deps, {
    account_id: accountId,
    livemode,
    url,
    enabled_events: events,
    sealed: await deps.sealer.seal(makeSigningSecret(), endpointOwner(accountId, livemode)),
    now: deps.now(),
  });
  return await shownOf(deps, owner, stored);
}

/**
 * Makes a new secret that signs `afterMs` from now; until then the present one does.
 * @returns null when there is no endpoint
 */
export async function rollSecret(
  deps: EndpointDeps,
  { accountId, livemode }: EndpointOwner,
  afterMs: number,
): Promise<(ShownEndpoint & { active_from: string }) | null> {
  const secret = makeSigningSecret();
  const now = deps.now();
  const sealed = await deps.sealer.seal(secret, endpointOwner(accountId, livemode));
  const active_from = new Date(now.getTime() + afterMs).toISOString();
  const rolled = await inTransaction(deps.mongo, async (session) => {
    const wish = { account_id: accountId, livemode, sealed, now, afterMs };
    const endpoint = await deps.endpoints.roll(wish, session);
    if (endpoint === null) return null;
    const line = { act: 'webhook.rolled', account_id: accountId, livemode, target: null } as const;
    await deps.audit({ ...line, after: { active_from } }, session);
    return endpoint;
  });
  if (rolled === null) return null;
  return { url: rolled.url, signing_secret: secret, active_from };
}

/**
 * Finds the endpoint with the secret that signs now and, during a roll, the next one. The audit log
 * keeps that it was shown.
 */
export async function showEndpoint(
  deps: EndpointDeps,
  owner: EndpointOwner,
): Promise<(ShownEndpoint & { next_secret?: string; next_active_from?: string }) | null> {
  const endpoint = await deps.endpoints.get(owner.accountId, owner.livemode);
  if (endpoint === null) return null;
  const { accountId: account_id, livemode } = owner;
  await deps.audit({ act: 'webhook.secret_shown', account_id, livemode, target: null });
  const shown = await shownOf(deps, owner, endpoint);
  const next = endpoint.secrets.at(-1);
  if (next === undefined || next.active_from <= deps.now().toISOString()) return shown;
  const next_secret = await deps.sealer.open(
    next.sealed,
    endpointOwner(owner.accountId, owner.livemode),
  );
  return { ...shown, next_secret, next_active_from: next.active_from };
}

async function shownOf(
  deps: EndpointDeps,
  owner: EndpointOwner,
  endpoint: EndpointDocument,
): Promise<ShownEndpoint> {
  const { url, enabled_events } = endpoint;
  return defined({ url, signing_secret: await openCurrent(deps, owner, endpoint), enabled_events });
}

async function openCurrent(
  { sealer, now }: EndpointDeps,
  { accountId, livemode }: EndpointOwner,
  endpoint: EndpointDocument,
): Promise<string> {
  // By our clock the first secret may not be active yet; it is the one that signs all the same.
  const sealed = signingSecret(endpoint, now()) ?? endpoint.secrets[0]?.sealed;
  if (sealed === undefined) throw new Error('The endpoint has no signing secret.');
  return await sealer.open(sealed, endpointOwner(accountId, livemode));
}

/** Sets the endpoint. When two calls register it at once, the second finds the first's secret. */
async function settle(deps: EndpointDeps, setting: EndpointSetting): Promise<EndpointDocument> {
  for (let race = 1; ; race += 1) {
    try {
      return await inTransaction(deps.mongo, (session) => setAudited(deps, setting, session));
    } catch (error) {
      if (race === RACES_MAX || !isDuplicateKey(error, 'account_environment')) throw error;
    }
  }
}

async function setAudited(
  { endpoints, audit }: EndpointDeps,
  setting: EndpointSetting,
  session: ClientSession,
): Promise<EndpointDocument> {
  const { account_id, livemode } = setting;
  const before = await endpoints.get(account_id, livemode, session);
  const after = await endpoints.set(setting, session);
  const line = { act: 'webhook.set', account_id, livemode, target: null } as const;
  await audit({ ...line, before: before && factsOf(before), after: factsOf(after) }, session);
  return after;
}

function factsOf({ url, enabled_events }: EndpointDocument) {
  return { url, events: enabled_events ?? 'all' };
}
