import type { ClientSession, Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { Encrypted } from '../encryption/encrypter';

/**
 * Key under which a connector signs its callbacks. Its secret is sealed and not hashed,
 * since a signature is checked with the secret itself.
 * @see docs/connectors.md#callbacks-over-http
 */
export interface ConnectorKeyDocument {
  _id: string;
  connector: string;
  sealed: Encrypted;
  created_at: string;
  revoked_at: string | null;
}

/** Most keys of one connector that are looked at. */
const KEYS_MAX = 1_000;

/** Owner that a connector's secret is sealed for. */
export function connectorKeyOwner(id: string): string {
  return `connector_key/${id}`;
}

export function createConnectorKeyStore(db: Db) {
  const keys: Collection<ConnectorKeyDocument> =
    db.collection<ConnectorKeyDocument>('connector_keys');
  const forConnector = (connector: string) =>
    keys.find({ connector }).sort({ created_at: 1, _id: 1 }).limit(KEYS_MAX).toArray();
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(keys, [{ key: { connector: 1, created_at: 1 }, name: 'connector' }], missing),
    insert: (key: ConnectorKeyDocument, session?: ClientSession) =>
      keys.insertOne(key, { session }),
    get: (id: string) => keys.findOne({ _id: id }),
    /** Lists keys of a connector, the oldest first, revoked ones too. */
    forConnector,
    /** Keys that count now, the newest first; read each time, so that a revoked one is dead at once. */
    current: (connector: string) =>
      keys
        .find({ connector, revoked_at: null })
        .sort({ created_at: -1, _id: 1 })
        .limit(KEYS_MAX)
        .toArray(),
    /** Revokes from the next callback on, and gives the key as it was; a second time keeps the first. */
    revoke: (id: string, now: string, session?: ClientSession) =>
      keys.findOneAndUpdate(
        { _id: id },
        [{ $set: { revoked_at: { $ifNull: ['$revoked_at', now] } } }],
        { returnDocument: 'before', session },
      ),
    /** Lists keys in the order of their ids, starting behind `after`. */
    page: (after: string, limit: number) =>
      keys
        .find({ _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Replaces a sealed secret while it is there unchanged. */
    reencrypt: (id: string, before: Encrypted, encrypted: Encrypted) =>
      keys.updateOne({ _id: id, sealed: before }, { $set: { sealed: encrypted } }),
  };
}
