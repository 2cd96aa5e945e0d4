import type { Collection, Db } from 'mongodb';
import type { AnyCallback, CallbackName, CallbackResource } from '../domain/callback';
import { defined } from '../domain/defined';
import { isDuplicateKey } from '../mongo';
import { type IndexWork, makeIndexes } from '../mongo-indexes';

/** Callback of a bank, kept before anything is done about it. */
export interface CallbackDocument {
  /** `{connector}:{callback_id}`: unique, so a repeat is recognised. */
  _id: string;
  connector: string;
  resource: CallbackResource;
  resource_id: string;
  name: CallbackName;
  body: AnyCallback;
  received_at: string;
  signalled_at: string | null;
  /** Reason why it moved nothing; null when it did, or is still under way. */
  unapplied: string | null;
  /** Reason why it waits for an operator; null when it doesn't. */
  parked: string | null;
  /** Id of the connector's key that it came signed with; absent where its sender is not proved. */
  signed_by?: string;
}

type NewCallback = Pick<
  CallbackDocument,
  'connector' | 'resource' | 'resource_id' | 'name' | 'body' | 'received_at' | 'signed_by'
>;

/** Ways of waiting: for an operator, or for a signal that was never sent. */
const WAITING = {
  parked: { signalled_at: null, parked: { $type: 'string' as const } },
  unsignalled: { signalled_at: null, parked: null },
  // Names the index's first field, without which the index is not used.
  any: { signalled_at: null, parked: { $exists: true } },
};

/** Selection of callbacks that no workflow has heard of. */
export interface WaitingFilter {
  waits: keyof typeof WAITING;
  connector?: string | undefined;
  resource_id?: string | undefined;
  /** ISO 8601; only callbacks that came before it. */
  received_before?: string | undefined;
  /** ISO 8601; only callbacks that came at it or later. */
  received_from?: string | undefined;
}

export function callbackKey(connector: string, callbackId: string): string {
  return `${connector}:${callbackId}`;
}

export function createCallbackStore(db: Db) {
  const callbacks: Collection<CallbackDocument> = db.collection<CallbackDocument>('bank_callbacks');
  return {
    ensureIndexes: (work?: IndexWork) =>
      makeIndexes(
        callbacks,
        [
          { key: { resource_id: 1, received_at: 1 }, name: 'resource' },
          {
            key: { parked: 1, received_at: 1 },
            name: 'waiting',
            partialFilterExpression: { signalled_at: null },
          },
        ],
        work,
      ),
    /** Keeps a callback; gives its row, which its first delivery may have made. */
    keep: async (callback: NewCallback): Promise<CallbackDocument> => {
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
    /** Notes that it was signalled; false when it had been noted. */
    markSignalled: async (_id: string, signalled_at: string): Promise<boolean> => {
      const noted = { $set: { signalled_at, parked: null } };
      const { modifiedCount } = await callbacks.updateOne({ _id, signalled_at: null }, noted);
      return modifiedCount === 1;
    },
    /** Marks many in one command. */
    markAllSignalled: (rows: readonly Pick<CallbackDocument, '_id' | 'signalled_at'>[]) =>
      callbacks.bulkWrite(
        rows.map(({ _id, signalled_at }) => ({
          updateOne: { filter: { _id }, update: { $set: { signalled_at, parked: null } } },
        })),
        { ordered: false },
      ),
    /** Lets it wait for an operator, unless it was signalled meanwhile. */
    park: (_id: string, parked: string) =>
      callbacks.updateOne({ _id, signalled_at: null }, { $set: { parked } }),
    /** Keeps the reason, also of a signal that came past this collection. */
    markUnapplied: (_id: string, unapplied: string, callback: Omit<NewCallback, 'received_at'>) =>
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
    get: (_id: string) => callbacks.findOne({ _id }),
    /** Reads those that wait, the longest waiting first. */
    waiting: (filter: WaitingFilter) =>
      callbacks.find(waitingQuery(filter)).sort({ received_at: 1, _id: 1 }),
    countWaiting: (filter: WaitingFilter) => callbacks.countDocuments(waitingQuery(filter)),
    forResource: (resource_id: string) =>
      callbacks.find({ resource_id }).sort({ received_at: 1 }).limit(200).toArray(),
  };
}

function waitingQuery(filter: WaitingFilter) {
  const { waits, connector, resource_id, received_before, received_from } = filter;
  const times = defined({ $lt: received_before, $gte: received_from });
  const received_at = Object.keys(times).length === 0 ? undefined : times;
  return { ...WAITING[waits], ...defined({ connector, resource_id, received_at }) };
}
