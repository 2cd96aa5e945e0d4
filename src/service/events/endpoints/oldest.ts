import { inTransaction } from '../../../base/mongo';
import { omitUndefined } from '../../../domain/defined';
import type { EventType } from '../../../domain/webhook/event';
import { type Endpoint, type EndpointKey, secretOwner } from '../../../store/endpoints';

import type { Owner } from '../../deps';
import { waitForCaches } from '../../installation/caches';
import { accountNow } from '../../merchants/clock';
import {
  decryptCurrent,
  type EndpointDeps,
  makeEndpointId,
  makeSigningSecret,
  retryRaces,
  rollEndpoint,
  toAuditFacts,
} from './manage';

const RACES_MAX = 3;

interface ShownEndpoint {
  url: string;
  signing_secret: string;
  /** Absent: all. */
  enabled_events?: EventType[];
}

interface EndpointRequest {
  /** Accepted by `admitEndpointUrl`. */
  url: string;
  /** Undefined: unchanged. */
  events?: readonly EventType[] | 'all' | undefined;
  /** Shows the secret of an existing endpoint, too. */
  showsSecret: boolean;
}

export type EndpointSummary = NonNullable<Awaited<ReturnType<typeof getEndpoint>>>;

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
  { url, events, showsSecret }: EndpointRequest,
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
  const endpoint = await retryRaces(RACES_MAX, () =>
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
