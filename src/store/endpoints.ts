import type { ClientSession, Collection, Db, ObjectId, WithId } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { EventType } from '../domain/webhook/event';
import type { Encrypted } from '../encryption/encrypter';
import { createCache } from './cache';

interface EndpointSecret {
  sealed: Encrypted;
  /** ISO 8601: when it begins to sign. */
  active_from: string;
}

/**
 * Webhook endpoint of one account in one environment.
 * @see docs/webhooks.md#register-an-endpoint
 */
export interface EndpointDocument {
  account_id: string;
  livemode: boolean;
  url: string;
  /** Oldest first: the secret that signs and, during a roll, the next one. */
  secrets: EndpointSecret[];
  /** Event types that are sent; all when not there, those of later versions too. */
  enabled_events?: EventType[];
  created_at: string;
  updated_at: string;
}

export interface EndpointSetting {
  account_id: string;
  livemode: boolean;
  url: string;
  /** Used only when the endpoint has no secret yet. */
  sealed: Encrypted;
  /** Stays as it is when not given. */
  enabled_events?: readonly EventType[] | 'all' | undefined;
  now: Date;
}

export interface SecretRoll {
  account_id: string;
  livemode: boolean;
  sealed: Encrypted;
  now: Date;
  /**
   * Time for which the present secret goes on signing: not at all, 1 h or 24 h.
   * @see docs/webhooks.md#roll-the-secret
   */
  afterMs: number;
}

export type EndpointStore = ReturnType<typeof createEndpointStore>;

/** Owner that a signing secret is sealed for. */
export function endpointOwner(account_id: string, livemode: boolean): string {
  return `webhook_endpoint/${account_id}/${livemode ? 'live' : 'sandbox'}`;
}

/**
 * Gives the secret that signs now: a header has one `v1` at all times.
 * @see docs/webhooks.md#roll-the-secret
 * @returns undefined only while no secret is active yet
 */
export function signingSecret(
  endpoint: Pick<EndpointDocument, 'secrets'>,
  now: Date,
): Encrypted | undefined {
  return endpoint.secrets.filter(({ active_from }) => active_from <= now.toISOString()).at(-1)
    ?.sealed;
}

export function createEndpointStore(db: Db, cacheMs = 0) {
  const cache = createCache<WithId<EndpointDocument>>(cacheMs);
  const endpoints: Collection<EndpointDocument> =
    db.collection<EndpointDocument>('webhook_endpoints');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        endpoints,
        [{ key: { account_id: 1, livemode: 1 }, name: 'account_environment', unique: true }],
        missing,
      ),
    get: (account_id: string, livemode: boolean, session?: ClientSession) =>
      endpoints.findOne({ account_id, livemode }, { session }),
    /** Gives an endpoint of up to 2 seconds ago. @see src/store/cache.ts */
    getCached: (account_id: string, livemode: boolean) =>
      cache.get(endpointOwner(account_id, livemode), () =>
        endpoints.findOne({ account_id, livemode }),
      ),
    /** Registers the endpoint or moves it; a secret that exists stays. */
    set: (setting: EndpointSetting, session?: ClientSession) => set(endpoints, setting, session),
    /** Adds a secret that signs after `afterMs`; null when there is no endpoint. */
    roll: (roll: SecretRoll, session?: ClientSession) => rollSecret(endpoints, roll, session),
    remove: async (account_id: string, livemode: boolean): Promise<boolean> =>
      (await endpoints.deleteOne({ account_id, livemode })).deletedCount === 1,
    /** Lists endpoints in the order of their ids, starting behind `after`. */
    page: (limit: number, after?: ObjectId) =>
      endpoints
        .find(after === undefined ? {} : { _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Replaces a secret while it is there unchanged: a roll may have dropped it meanwhile. */
    reencryptSecret: (id: ObjectId, before: Encrypted, encrypted: Encrypted) =>
      endpoints.updateOne(
        { _id: id, 'secrets.sealed': before },
        { $set: { 'secrets.$.sealed': encrypted } },
      ),
  };
}

async function set(
  endpoints: Collection<EndpointDocument>,
  { account_id, livemode, url, sealed, enabled_events, now }: EndpointSetting,
  session: ClientSession | undefined,
): Promise<EndpointDocument> {
  const at = now.toISOString();
  const listed = enabled_events === 'all' ? undefined : enabled_events;
  const stored = await endpoints.findOneAndUpdate(
    { account_id, livemode },
    {
      $set: {
        url,
        updated_at: at,
        ...(listed === undefined ? {} : { enabled_events: [...listed] }),
      },
      ...(enabled_events === 'all' ? { $unset: { enabled_events: true } } : {}),
      $setOnInsert: { secrets: [{ sealed, active_from: at }], created_at: at },
    },
    { upsert: true, returnDocument: 'after', session },
  );
  if (stored === null) throw new Error('An upsert gave no document.');
  return stored;
}

/**
 * Rolls in one atomic step. Superseded secrets are dropped, and so is an earlier roll that is not
 * in force yet: the last one asked for wins.
 */
function rollSecret(
  endpoints: Collection<EndpointDocument>,
  { account_id, livemode, sealed, now, afterMs }: SecretRoll,
  session: ClientSession | undefined,
): Promise<EndpointDocument | null> {
  const at = now.toISOString();
  const next = { sealed, active_from: new Date(now.getTime() + afterMs).toISOString() };
  const active = {
    $filter: { input: '$secrets', cond: { $lte: ['$$this.active_from', { $literal: at }] } },
  };
  const remaining = afterMs > 0 ? { $slice: [active, -1] } : [];
  return endpoints.findOneAndUpdate(
    { account_id, livemode },
    [
      {
        $set: {
          secrets: { $concatArrays: [remaining, [{ $literal: next }]] },
          updated_at: { $literal: at },
        },
      },
    ],
    { returnDocument: 'after', session },
  );
}
