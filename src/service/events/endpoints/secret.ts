import { randomBytes } from 'node:crypto';
import { inTransaction } from '../../../base/mongo';
import type { AuditFacts } from '../../../domain/account/audit-log';
import {
  type Endpoint,
  type EndpointDocument,
  secretOwner,
  signingSecret,
} from '../../../store/endpoints';
import type { ActDeps, Owner } from '../../deps';
import { waitForCaches } from '../../installation/caches';
import { accountNow } from '../../merchants/clock';

const SECRET_BYTES = 32;
const HOUR_MS = 3_600_000;

/** ms. @see docs/webhooks.md#roll-the-secret */
export const ROLL_DELAYS_MS = { now: 0, '1h': HOUR_MS, '24h': 24 * HOUR_MS } as const;
export type RollDelay = keyof typeof ROLL_DELAYS_MS;

export type EndpointDeps = Omit<ActDeps, 'payers'>;

/** Without an id: the oldest endpoint. */
export interface EndpointOwner extends Owner {
  endpoint_id?: string | undefined;
}

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
  { account_id, livemode, endpoint_id }: EndpointOwner,
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
    const request = {
      account_id,
      livemode,
      endpoint_id: target,
      ciphertext,
      now,
      afterMs,
      updated_at,
    };
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
  // By this process's clock, the first secret may not be active yet.
  const ciphertext = signingSecret(endpoint, now()) ?? endpoint.secrets[0]?.ciphertext;
  if (ciphertext === undefined) throw new Error('The endpoint has no signing secret.');
  return await encrypter.decrypt(ciphertext, secretOwner(endpoint));
}

/** Facts by which `audit verify` knows an endpoint. */
export function toAuditFacts({
  url,
  enabled_events,
  disabled_reason,
}: EndpointDocument): AuditFacts {
  return { url, events: enabled_events ?? 'all', disabled_reason };
}
