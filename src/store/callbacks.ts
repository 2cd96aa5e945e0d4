import { createHash } from 'node:crypto';
import type { ClientSession, Db } from 'mongodb';
import { isDuplicateKey } from '../base/mongo';
import { indexBuilder } from '../base/mongo-indexes';
import {
  type AnyCallback,
  type CallbackName,
  type CallbackResource,
  callbackText,
} from '../domain/banks/callback';
import { omitUndefined } from '../domain/defined';
import { countBy, deleteSome, toRange } from './list';

export interface CallbackDocument {
  /** `{connector}:{callback_id}`: a repeat has the same. */
  _id: string;
  connector: string;
  resource: CallbackResource;
  resource_id: string;
  name: CallbackName;
  body: AnyCallback;
  received_at: string;
  signalled_at: string | null;
  /** Null when it was applied, or is still being processed. */
  unapplied: string | null;
  parked: string | null;
  dismissed_at?: string;
  /** Id of the connector key; absent: not verified. */
  key_id?: string;
  /** Hex HMAC, which the workflow verifies. */
  signature?: string;
  /** The signature was refused; `unapplied` says why. */
  refused?: true;
  /** Applied so long ago that its resource does not name it any more. */
  applied?: true;
}

type Signing = Pick<CallbackDocument, 'key_id' | 'signature'>;

type NewCallback = Pick<
  CallbackDocument,
  'connector' | 'resource' | 'resource_id' | 'name' | 'body' | 'received_at'
> &
  Signing;

type CallbackFacts = Omit<NewCallback, 'received_at'>;

/** Names the signature, too: with another one, a callback must be signalled again. */
export type SentCallback = Pick<CallbackDocument, '_id' | 'signature'>;
export type SignalledCallback = SentCallback & Pick<CallbackDocument, 'signalled_at'>;

const PARKED = { signalled_at: null, parked: { $type: 'string' as const } };
const NOT_DISMISSED = { dismissed_at: { $exists: false } };
const WAITING = {
  parked: PARKED,
  unsignalled: { signalled_at: null, parked: null },
  // Contains the first field of the index, which is not used otherwise.
  any: { signalled_at: null, parked: { $exists: true } },
};
/** Applied, in progress, or lost by Temporal. */
const SIGNALLED = {
  ...{ signalled_at: { $ne: null }, unapplied: null, parked: null },
  applied: { $exists: false },
};
const MISSED_MAX = 100;

export interface WaitingFilter {
  waits: keyof typeof WAITING;
  with_dismissed?: boolean | undefined;
  connector?: string | undefined;
  resource_id?: string | undefined;
  received_before?: string | undefined;
  received_from?: string | undefined;
}

export function callbackKey(connector: string, callbackId: string): string {
  return `${connector}:${callbackId}`;
}

function getText({ body: callback, ...about }: CallbackFacts): string {
  return callbackText({ ...about, callback });
}

export function createCallbackStore(db: Db) {
  const callbacks = db.collection<CallbackDocument>('bank_callbacks');
  return {
    ensureIndexes: indexBuilder(callbacks, [
      { key: { resource_id: 1, received_at: 1 }, name: 'resource' },
      { key: { received_at: 1 }, name: 'received' },
      {
        key: { parked: 1, received_at: 1 },
        name: 'waiting',
        partialFilterExpression: { signalled_at: null },
      },
    ]),
    /** @returns the row, which an earlier delivery may have written */
    insertOnce: async (callback: NewCallback): Promise<CallbackDocument> => {
      const _id = callbackKey(callback.connector, callback.body.callback_id);
      const document = { _id, ...callback, signalled_at: null, unapplied: null, parked: null };
      try {
        await callbacks.insertOne(document);
        return document;
      } catch (error) {
        const first = isDuplicateKey(error) ? await callbacks.findOne({ _id }) : null;
        if (first === null) throw error;
        return first;
      }
    },
    markSignalled: async (sent: SentCallback, signalled_at: string): Promise<boolean> => {
      const update = { $set: { signalled_at, parked: null } };
      const waiting = { ...buildSentFilter(sent), signalled_at: null };
      return (await callbacks.updateOne(waiting, update)).modifiedCount === 1;
    },
    /** Lets the callback be signalled again. */
    replaceSignature: (
      { _id, refused }: Pick<CallbackDocument, '_id' | 'refused'>,
      signedCallback: Required<Signing> & Pick<CallbackDocument, 'body'>,
    ) => {
      const reason = refused ? { unapplied: null } : {};
      const waits = { signalled_at: null, parked: null };
      return callbacks.updateOne(
        { _id },
        {
          $set: { ...signedCallback, ...waits, ...reason },
          $unset: { refused: '', dismissed_at: '' },
        },
      );
    },
    markAllSignalled: (rows: readonly SignalledCallback[]) =>
      callbacks.bulkWrite(
        rows.map(({ signalled_at, ...sent }) => ({
          updateOne: {
            filter: buildSentFilter(sent),
            update: { $set: { signalled_at, parked: null } },
          },
        })),
        { ordered: false },
      ),
    /** Does nothing if the callback was signalled meanwhile. */
    park: (_id: string, parked: string) =>
      callbacks.updateOne({ _id, signalled_at: null }, { $set: { parked } }),
    /** @returns false when the callback is not parked any more, or dismissed already */
    dismiss: async (_id: string, dismissed_at: string, session: ClientSession) => {
      const filter = { _id, ...PARKED, ...NOT_DISMISSED };
      const update = { $set: { dismissed_at } };
      return (await callbacks.updateOne(filter, update, { session })).matchedCount === 1;
    },
    /** @returns how many parked ones it has dismissed */
    dismissAll: async (connector: string, dismissed_at: string, session: ClientSession) => {
      const filter = { connector, ...PARKED, ...NOT_DISMISSED };
      const update = { $set: { dismissed_at } };
      return (await callbacks.updateMany(filter, update, { session })).modifiedCount;
    },
    /** @returns how many were deleted */
    deleteDismissed: (before: string, limit: number): Promise<number> =>
      deleteSome(callbacks, { ...PARKED, dismissed_at: { $lt: before } }, limit),
    /** Stores the reason, also for a signal that no callback preceded. */
    markUnapplied: (_id: string, unapplied: string, callback: CallbackFacts) =>
      callbacks.updateOne(
        { _id },
        {
          $set: { unapplied },
          $setOnInsert: {
            ...callback,
            received_at: callback.body.occurred_at,
            signalled_at: callback.body.occurred_at,
            parked: null,
          },
        },
        { upsert: true },
      ),
    /** Stores an unverified callback, also one that is not stored yet. */
    markRefused: async (unapplied: string, refused: NewCallback): Promise<void> => {
      const { connector, body, signature } = refused;
      const own = callbackKey(connector, body.callback_id);
      const stored = await callbacks.findOne({ _id: own });
      const refusal = { unapplied, refused: true as const };
      const isSame = stored?.signature === signature;
      if (stored !== null && isSame && getText(stored) === getText(refused)) {
        // With a new signature it is a different callback.
        const same = buildSentFilter(omitUndefined({ _id: own, signature }));
        if ((await callbacks.updateOne(same, { $set: refusal })).matchedCount === 1) return;
      }
      const row = { ...refused, signalled_at: refused.received_at, parked: null };
      const text = `${getText(refused)}\n${signature ?? ''}`;
      const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
      await callbacks.updateOne(
        // Never equals the id of a verified callback: no connector has a slash in its name.
        { _id: `refused/${connector}/${digest}/${body.callback_id}` },
        { $set: refusal, $setOnInsert: row },
        { upsert: true },
      );
    },
    /** Notes it for ever, before its resource names it no more. */
    markApplied: (_id: string, session: ClientSession) =>
      callbacks.updateOne({ _id }, { $set: { applied: true } }, { session }),
    get: (_id: string) => callbacks.findOne({ _id }),
    waiting: (filter: WaitingFilter) =>
      callbacks.find(waitingQuery(filter)).sort({ received_at: 1, _id: 1 }),
    /**
     * Lists what was signalled about a resource, and is not known to be processed.
     * @param applied `callback_id`s
     */
    listMissed: (resource_id: string, applied: readonly string[]) =>
      callbacks
        .find({ resource_id, ...SIGNALLED, 'body.callback_id': { $nin: [...applied] } })
        .sort({ received_at: 1, _id: 1 })
        .limit(MISSED_MAX)
        .toArray(),
    /** Reads those of all resources, in the order of arrival. */
    missedSince: (received_from: string, connector: string | undefined) =>
      callbacks
        .find({
          received_at: { $gte: received_from },
          ...SIGNALLED,
          ...omitUndefined({ connector }),
        })
        .sort({ received_at: 1 })
        .batchSize(MISSED_MAX),
    countWaiting: (filter: WaitingFilter, limit?: number) =>
      callbacks.countDocuments(waitingQuery(filter), omitUndefined({ limit })),
    countByConnector: (filter: WaitingFilter) =>
      countBy<{ waits: string; connector: string; count: number }>(
        callbacks,
        waitingQuery(filter),
        { waits: { $literal: filter.waits }, connector: '$connector' },
      ),
    forResource: (resource_id: string) =>
      callbacks.find({ resource_id }).sort({ received_at: 1 }).limit(200).toArray(),
  };
}

function buildSentFilter({ _id, signature }: SentCallback) {
  return { _id, signature: signature ?? { $exists: false } };
}

function waitingQuery(filter: WaitingFilter) {
  const { waits, with_dismissed, connector, resource_id, received_before, received_from } = filter;
  const received_at = toRange({ $lt: received_before, $gte: received_from });
  const dismissed = with_dismissed ? {} : NOT_DISMISSED;
  const own = omitUndefined({ connector, resource_id, received_at });
  return { ...WAITING[waits], ...dismissed, ...own };
}
