import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Encrypted } from '../encryption/encrypter';
import { readPage } from './list';

/**
 * The secret is encrypted and not hashed, since a verification needs it.
 * @see docs/connectors.md#callbacks-over-http
 */
export interface ConnectorKeyDocument {
  _id: string;
  connector: string;
  ciphertext: Encrypted;
  created_at: string;
  revoked_at: string | null;
}

const KEYS_MAX = 1_000;

export function connectorKeyOwner(id: string): string {
  return `connector_key/${id}`;
}

export function createConnectorKeyStore(db: Db) {
  const keys = db.collection<ConnectorKeyDocument>('connector_keys');
  const forConnector = (connector: string) =>
    keys.find({ connector }).sort({ created_at: 1, _id: 1 }).limit(KEYS_MAX).toArray();
  return {
    ensureIndexes: indexBuilder(keys, [
      { key: { connector: 1, created_at: 1 }, name: 'connector' },
    ]),
    insert: (key: ConnectorKeyDocument, session?: ClientSession) =>
      keys.insertOne(key, { session }),
    get: (id: string) => keys.findOne({ _id: id }),
    forConnector,
    /** Newest first; never cached, so that a revocation takes effect at once. */
    current: (connector: string) =>
      keys
        .find({ connector, revoked_at: null })
        .sort({ created_at: -1, _id: 1 })
        .limit(KEYS_MAX)
        .toArray(),
    /** @returns the key as it was before; null when it was revoked already */
    revoke: (id: string, now: string, session?: ClientSession) =>
      keys.findOneAndUpdate(
        { _id: id },
        [{ $set: { revoked_at: { $ifNull: ['$revoked_at', now] } } }],
        { returnDocument: 'before', session },
      ),
    page: (after: string, limit: number) => readPage<ConnectorKeyDocument>(keys, after, limit),
    reencrypt: (id: string, before: Encrypted, encrypted: Encrypted) =>
      keys.updateOne({ _id: id, ciphertext: before }, { $set: { ciphertext: encrypted } }),
  };
}
