import type { ClientSession, Db, ObjectId, WithId } from 'mongodb';
import { deriveUuid } from '../base/ids';
import { indexBuilder } from '../base/mongo-indexes';
import type { EventType } from '../domain/webhook/event';
import type { Encrypted } from '../encryption/encrypter';
import { createCache } from './cache';

interface EndpointSecret {
  sealed: Encrypted;
  /** ISO 8601: the secret signs from then on. */
  active_from: string;
}

/**
 * Webhook endpoint of one account in one environment. @see docs/webhooks.md#register-an-endpoint
 */
export interface EndpointDocument {
  account_id: string;
  livemode: boolean;
  url: string;
  /** Oldest first: the signing secret and, during a roll, the next one. */
  secrets: EndpointSecret[];
  /** Absent: all types, those of later versions too. */
  enabled_events?: EventType[];
  created_at: string;
  updated_at: string;
}

export interface EndpointSetting {
  account_id: string;
  livemode: boolean;
  url: string;
  /** First secret; a stored one stays. */
  sealed: Encrypted;
  enabled_events?: readonly EventType[] | 'all' | undefined;
  now: Date;
}

export interface SecretRoll {
  account_id: string;
  livemode: boolean;
  sealed: Encrypted;
  now: Date;
  /**
   * Time for which the current secret still signs: 0, 1 h or 24 h. @see
   * docs/webhooks.md#roll-the-secret
   */
  afterMs: number;
}

export type EndpointStore = ReturnType<typeof createEndpointStore>;

/** Returns the id of an endpoint that was registered before endpoints had ids. */
export function firstEndpointId(account_id: string, livemode: boolean): string {
  return `we_${deriveUuid(endpointOwner(account_id, livemode))}`;
}

export function endpointOwner(account_id: string, livemode: boolean): string {
  return `webhook_endpoint/${account_id}/${livemode ? 'live' : 'sandbox'}`;
}

/**
 * Returns the secret that signs now; undefined while none is active. @see
 * docs/webhooks.md#roll-the-secret
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
  const endpoints = db.collection<EndpointDocument>('webhook_endpoints');
  return {
    ensureIndexes: indexBuilder(endpoints, [
      { key: { account_id: 1, livemode: 1 }, name: 'account_environment', unique: true },
    ]),
    get: (account_id: string, livemode: boolean, session?: ClientSession) =>
      endpoints.findOne({ account_id, livemode }, { session }),
    /** Returns an endpoint that may be 2 seconds old. @see src/store/cache.ts */
    getCached: (account_id: string, livemode: boolean) =>
      cache.get(endpointOwner(account_id, livemode), () =>
        endpoints.findOne({ account_id, livemode }),
      ),
    set: async (
      { account_id, livemode, url, sealed, enabled_events, now }: EndpointSetting,
      session?: ClientSession,
    ) => {
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
    },
    /**
     * Adds a secret that signs after `afterMs`, in one atomic step; null without an endpoint. It
     * drops superseded secrets, and an earlier roll that is not active yet.
     */
    roll: (
      { account_id, livemode, sealed, now, afterMs }: SecretRoll,
      session?: ClientSession,
    ): Promise<EndpointDocument | null> => {
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
    },
    remove: async (account_id: string, livemode: boolean): Promise<boolean> =>
      (await endpoints.deleteOne({ account_id, livemode })).deletedCount === 1,
    page: (limit: number, after?: ObjectId) =>
      endpoints
        .find(after === undefined ? {} : { _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    reencryptSecret: (id: ObjectId, before: Encrypted, encrypted: Encrypted) =>
      endpoints.updateOne(
        { _id: id, 'secrets.sealed': before },
        { $set: { 'secrets.$.sealed': encrypted } },
      ),
  };
}
