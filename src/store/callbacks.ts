import { createHash } from 'node:crypto';
import type { Collection, Db } from 'mongodb';
import { isDuplicateKey } from '../base/mongo';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { AnyCallback, CallbackName, CallbackResource } from '../domain/callback/callback';
import { callbackText } from '../domain/callback/signature';
import { omitUndefined } from '../domain/defined';

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
  /** Hex HMAC under that key, for its workflow. */
  mac?: string;
  /** Whether it moved nothing because its sender is not known: `unapplied` says why. */
  refused?: true;
}

type Signing = Pick<CallbackDocument, 'signed_by' | 'mac'>;

type NewCallback = Pick<
  CallbackDocument,
  'connector' | 'resource' | 'resource_id' | 'name' | 'body' | 'received_at'
> &
  Signing;

/** Facts and proof of a callback. */
type CallbackFacts = Omit<NewCallback, 'received_at'>;

/** Callback as it was signalled: under another mac it is still to be signalled. */
export type SentCallback = Pick<CallbackDocument, '_id' | 'mac'>;
export type SignalledCallback = SentCallback & Pick<CallbackDocument, 'signalled_at'>;

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

/**
 * Key of a refused callback that is not the one kept under its `callback_id`: no true one finds its
 * place taken. No name of a connector has a slash.
 */
function refusedKey({ connector, mac = '', body, ...about }: CallbackFacts): string {
  const text = callbackText({ connector, ...about, callback: body });
  const digest = createHash('sha256').update(`${text}\n${mac}`).digest('hex').slice(0, 16);
  return `refused/${connector}/${digest}/${body.callback_id}`;
}

/** Whether a kept callback is the very one that was refused. */
function isSameCallback(stored: CallbackDocument, refused: NewCallback): boolean {
  const getText = ({ body: callback, ...about }: CallbackFacts) =>
    callbackText({ ...about, callback });
  return stored.mac === refused.mac && getText(stored) === getText(refused);
}

export function createCallbackStore(db: Db) {
  const callbacks: Collection<CallbackDocument> = db.collection<CallbackDocument>('bank_callbacks');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
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
        missing,
      ),
    /** Keeps a callback; gives its row, which its first delivery may have made. */
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
    /** Notes that it was signalled; false when it had been noted, or has another mac by now. */
    markSignalled: async (sent: SentCallback, signalled_at: string): Promise<boolean> => {
      const update = { $set: { signalled_at, parked: null } };
      const waiting = { ...buildSentFilter(sent), signalled_at: null };
      const { modifiedCount } = await callbacks.updateOne(waiting, update);
      return modifiedCount === 1;
    },
    /** Lets a kept callback count as told under another mac, and wait for its signal again. */
    replaceSignature: (
      { _id, refused }: Pick<CallbackDocument, '_id' | 'refused'>,
      signedCallback: Required<Signing> & Pick<CallbackDocument, 'body'>,
    ) => {
      const reason = refused ? { unapplied: null } : {};
      const waits = { signalled_at: null, parked: null };
      return callbacks.updateOne(
        { _id },
        { $set: { ...signedCallback, ...waits, ...reason }, $unset: { refused: '' } },
      );
    },
    /** Marks many in one command, but those that have another mac by now. */
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
    /**
     * Keeps a callback whose sender is not known, with the reason, also one that came past this
     * collection.
     */
    markRefused: async (unapplied: string, refused: NewCallback): Promise<void> => {
      const { connector, body, mac } = refused;
      const own = callbackKey(connector, body.callback_id);
      const stored = await callbacks.findOne({ _id: own });
      const refusal = { unapplied, refused: true as const };
      if (stored !== null && isSameCallback(stored, refused)) {
        // Signed anew meanwhile, it is another one.
        const same = buildSentFilter(omitUndefined({ _id: own, mac }));
        if ((await callbacks.updateOne(same, { $set: refusal })).matchedCount === 1) return;
      }
      const row = { ...refused, signalled_at: refused.received_at, parked: null };
      await callbacks.updateOne(
        { _id: refusedKey(refused) },
        { $set: refusal, $setOnInsert: row },
        { upsert: true },
      );
    },
    get: (_id: string) => callbacks.findOne({ _id }),
    /** Reads those that wait, the longest waiting first. */
    waiting: (filter: WaitingFilter) =>
      callbacks.find(waitingQuery(filter)).sort({ received_at: 1, _id: 1 }),
    countWaiting: (filter: WaitingFilter) => callbacks.countDocuments(waitingQuery(filter)),
    forResource: (resource_id: string) =>
      callbacks.find({ resource_id }).sort({ received_at: 1 }).limit(200).toArray(),
  };
}

function buildSentFilter({ _id, mac }: SentCallback) {
  return { _id, mac: mac ?? { $exists: false } };
}

function waitingQuery(filter: WaitingFilter) {
  const { waits, connector, resource_id, received_before, received_from } = filter;
  const times = omitUndefined({ $lt: received_before, $gte: received_from });
  const received_at = Object.keys(times).length === 0 ? undefined : times;
  return { ...WAITING[waits], ...omitUndefined({ connector, resource_id, received_at }) };
}
