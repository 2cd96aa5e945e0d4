import type { ClientSession, Db, ObjectId, WithId } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { buildPosition } from '../domain/cursor';
import { omitUndefined } from '../domain/defined';
import type { DisabledReason, EventType } from '../domain/events/event';
import type { Encrypted } from '../encryption/encrypter';
import { createCache } from './cache';

export type EndpointStore = ReturnType<typeof createEndpointStore>;

/** Per account and environment. */
export const ENDPOINTS_MAX = 16;

const SUCCESS_NOTED_MS = 5 * 60_000;

export function endpointSlots(): number[] {
  return Array.from({ length: ENDPOINTS_MAX }, (_, slot) => slot);
}

/** A violation says that another call took the slot. */
export const SLOT_INDEX = 'account_environment_slot';

export function createEndpointStore(db: Db, cacheMs = 0) {
  const cache = createCache<Endpoint[]>(cacheMs);
  const endpoints = db.collection<EndpointDocument>('webhook_endpoints');
  const list = async (account_id: string, livemode: boolean, session?: ClientSession) => {
    const rows = endpoints.find({ account_id, livemode }, { session });
    return await rows.sort({ position: 1 }).toArray();
  };
  const listCached = async (account_id: string, livemode: boolean): Promise<Endpoint[]> =>
    (await cache.get(`${account_id} ${livemode}`, async () => {
      const rows = await list(account_id, livemode);
      return rows.length === 0 ? null : rows;
    })) ?? [];
  const find = async (
    { account_id, livemode, endpoint_id }: EndpointKey,
    session?: ClientSession,
  ): Promise<Endpoint | null> => {
    const rows = await list(account_id, livemode, session);
    const isWanted = (row: Endpoint) =>
      endpoint_id === undefined || row.endpoint_id === endpoint_id;
    return rows.find(isWanted) ?? null;
  };
  const update = async (
    { _id }: Pick<Endpoint, '_id'>,
    change: EndpointChange,
    at: string,
    session?: ClientSession,
  ): Promise<Endpoint | null> => {
    const { enabled_events, disabled_reason, failing_since, ...fields } = change;
    const isAll = enabled_events === 'all';
    const $set = {
      ...omitUndefined(fields),
      ...(enabled_events === undefined || isAll ? {} : { enabled_events: [...enabled_events] }),
      ...(disabled_reason ? { disabled_reason } : {}),
      updated_at: at,
    };
    const $unset = {
      ...(isAll ? { enabled_events: true as const } : {}),
      ...(disabled_reason === null ? { disabled_reason: true as const } : {}),
      ...(failing_since === null ? { failing_since: true as const } : {}),
    };
    const options = { returnDocument: 'after', session } as const;
    return await endpoints.findOneAndUpdate({ _id }, { $set, $unset }, options);
  };
  return {
    ensureIndexes: indexBuilder(endpoints, [
      { key: { account_id: 1, livemode: 1, slot: 1 }, name: SLOT_INDEX, unique: true },
    ]),
    /** Oldest first. */
    list,
    /** May be 2 seconds old. @see src/store/cache.ts */
    listCached,
    find,
    /** Reads the oldest endpoint. */
    get: (account_id: string, livemode: boolean, session?: ClientSession) =>
      find({ account_id, livemode }, session),
    /** @throws MongoServerError on `SLOT_INDEX` when another call took the slot */
    insert: async (document: EndpointDocument, session?: ClientSession): Promise<Endpoint> => {
      const { insertedId: _id } = await endpoints.insertOne({ ...document }, { session });
      return { ...document, _id };
    },
    set: async (setting: EndpointSetting, session?: ClientSession): Promise<Endpoint> => {
      const { account_id, livemode, endpoint_id, url, ciphertext, enabled_events, now } = setting;
      const { at = now.toISOString() } = setting;
      const oldest = await find({ account_id, livemode }, session);
      if (oldest !== null) {
        // The failures were those of the address.
        const healed = url === oldest.url ? {} : { failing_since: null };
        const change = { ...omitUndefined({ url, enabled_events }), ...healed };
        const stored = await update(oldest, change, at, session);
        if (stored === null) throw new Error('The endpoint was deleted meanwhile.');
        return stored;
      }
      const listed = enabled_events === 'all' ? undefined : enabled_events;
      const document: EndpointDocument = {
        ...{ account_id, livemode, endpoint_id, url, description: null },
        ...{ slot: 0, position: buildPosition(Date.parse(at), 0) },
        secrets: [{ ciphertext, active_from: now.toISOString() }],
        ...(listed === undefined ? {} : { enabled_events: [...listed] }),
        ...{ created_at: at, updated_at: at },
      };
      const { insertedId: _id } = await endpoints.insertOne(document, { session });
      return { ...document, _id };
    },
    update,
    /**
     * Adds a secret that signs after `afterMs`, in one atomic step. Drops superseded secrets, and
     * an earlier roll that is not active yet.
     * @returns null without the endpoint
     */
    roll: async (
      { ciphertext, now, afterMs, updated_at = now.toISOString(), ...owner }: SecretRoll,
      session?: ClientSession,
    ): Promise<Endpoint | null> => {
      const endpoint = await find(owner, session);
      if (endpoint === null) return null;
      const at = now.toISOString();
      const next = { ciphertext, active_from: new Date(now.getTime() + afterMs).toISOString() };
      const active = {
        $filter: { input: '$secrets', cond: { $lte: ['$$this.active_from', { $literal: at }] } },
      };
      // By this process's clock, the first may not be active yet.
      const current = {
        $cond: [{ $eq: [active, []] }, { $slice: ['$secrets', 1] }, { $slice: [active, -1] }],
      };
      const remaining = afterMs > 0 ? current : [];
      return await endpoints.findOneAndUpdate(
        { _id: endpoint._id },
        [
          {
            $set: {
              secrets: { $concatArrays: [remaining, [{ $literal: next }]] },
              updated_at: { $literal: updated_at },
            },
          },
        ],
        { returnDocument: 'after', session },
      );
    },
    remove: async ({ _id }: Pick<Endpoint, '_id'>, session?: ClientSession): Promise<boolean> =>
      (await endpoints.deleteOne({ _id }, { session })).deletedCount === 1,
    /** Keeps an earlier failure. */
    noteFailing: ({ _id }: Pick<Endpoint, '_id'>, failing_since: string) =>
      endpoints.updateOne({ _id, failing_since: { $exists: false } }, { $set: { failing_since } }),
    /** Ends the failing; a success is noted once in a while, since all deliveries would write it. */
    noteSuccess: async (
      { _id, failing_since, last_success_at }: Endpoint,
      at: string,
    ): Promise<void> => {
      const before = new Date(Date.parse(at) - SUCCESS_NOTED_MS).toISOString();
      if (failing_since === undefined && last_success_at !== undefined && last_success_at > before)
        return;
      await endpoints.updateOne(
        {
          _id,
          $or: [{ failing_since: { $lte: at } }, { last_success_at: { $not: { $gt: before } } }],
        },
        { $max: { last_success_at: at }, $unset: { failing_since: true } },
      );
    },
    /** Disables an endpoint only if the failing goes on, and nothing has succeeded since. */
    disableFailing: (
      { _id, failing_since }: Endpoint,
      since: string,
      updated_at: string,
      session: ClientSession,
    ): Promise<Endpoint | null> =>
      endpoints.findOneAndUpdate(
        {
          ...{ _id, failing_since, disabled_reason: { $exists: false } },
          last_success_at: { $not: { $gt: since } },
        },
        { $set: { disabled_reason: 'failing', updated_at } },
        { returnDocument: 'after', session },
      ),
    page: (limit: number, after?: ObjectId) =>
      endpoints
        .find(after === undefined ? {} : { _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    reencryptSecret: (id: ObjectId, before: Encrypted, encrypted: Encrypted) =>
      endpoints.updateOne(
        { _id: id, 'secrets.ciphertext': before },
        { $set: { 'secrets.$.ciphertext': encrypted } },
      ),
  };
}

interface EndpointSecret {
  ciphertext: Encrypted;
  /** ISO 8601: the secret signs from then on. */
  active_from: string;
}

/** @see docs/webhooks.md#register-an-endpoint */
export interface EndpointDocument {
  account_id: string;
  livemode: boolean;
  /** `we_…` */
  endpoint_id: string;
  /** 0 to 15, each once in an environment, which bounds the number of endpoints. */
  slot: number;
  position: string;
  url: string;
  description: string | null;
  /** Absent while it is enabled. */
  disabled_reason?: DisabledReason;
  /** Account time since which no attempt is known to have succeeded. */
  failing_since?: string;
  /** Account time of a success; the latest may be `SUCCESS_NOTED_MS` later. */
  last_success_at?: string;
  /** Oldest first: the signing secret and, during a roll, the next one. */
  secrets: EndpointSecret[];
  /** Absent: the default, all types but those of disputes. */
  enabled_events?: EventType[];
  created_at: string;
  updated_at: string;
}

export type Endpoint = WithId<EndpointDocument>;

export type EndpointChange = Partial<
  Pick<EndpointDocument, 'url' | 'description'> & {
    enabled_events: readonly EventType[] | 'all';
    /** Null enables it. */
    disabled_reason: DisabledReason | null;
    /** Null ends it. */
    failing_since: null;
  }
>;

export interface EndpointSetting {
  account_id: string;
  livemode: boolean;
  url: string;
  endpoint_id: string;
  /** First secret; a stored one stays. */
  ciphertext: Encrypted;
  enabled_events?: readonly EventType[] | 'all' | undefined;
  now: Date;
  /** Account time; by default `now`. */
  at?: string;
}

/** Without an id: the oldest endpoint. */
export interface EndpointKey {
  account_id: string;
  livemode: boolean;
  endpoint_id?: string | undefined;
}

interface SecretRoll extends EndpointKey {
  ciphertext: Encrypted;
  now: Date;
  /**
   * The current secret still signs for it: 0, 1 h or 24 h.
   * @see docs/webhooks.md#roll-the-secret
   */
  afterMs: number;
  /** Account time; by default the real one. */
  updated_at?: string;
}

export function secretOwner({
  account_id,
  livemode,
  endpoint_id,
}: Pick<EndpointDocument, 'account_id' | 'livemode' | 'endpoint_id'>): string {
  return `webhook_endpoint/${account_id}/${livemode ? 'live' : 'sandbox'}/${endpoint_id}`;
}

/**
 * By this process's clock, the first secret may not be active yet: it signs all the same.
 * @returns undefined without a secret. @see docs/webhooks.md#roll-the-secret
 */
export function signingSecret(
  { secrets }: Pick<EndpointDocument, 'secrets'>,
  now: Date,
): Encrypted | undefined {
  const active = secrets.filter(({ active_from }) => active_from <= now.toISOString());
  return (active.at(-1) ?? secrets[0])?.ciphertext;
}
