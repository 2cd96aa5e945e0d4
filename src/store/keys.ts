import { createHash, randomBytes } from 'node:crypto';
import type { ClientSession, Collection, Db, Filter } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { omitUndefined } from '../domain/defined';
import type { Scope } from '../domain/merchants/api-key';
import type { OperatorRole } from '../domain/operators/operator-act';
import type { Encrypted } from '../encryption/encrypter';
import { readPage } from './list';

/** Stores a fast hash of the key, since its secret has 256 random bits. */
export interface KeyDocument {
  _id: string;
  account_id: string;
  livemode: boolean;
  hash: string;
  last4: string;
  scopes: Scope[];
  created_at: string;
  revoked_at: string | null;
  /** ISO 8601; absent: never. */
  expires_at?: string;
  /** Networks of clients; absent: all. */
  allowed_cidrs?: string[];
  last_used_at: string | null;
}

export type KeyOwner = Pick<KeyDocument, 'account_id' | 'livemode'>;

const KEY_BYTES = 32;
/** Limits the writes of a key to one a minute. */
const LAST_USED_PRECISION_MS = 60_000;
/** Limit for one list, revoked keys included. */
const LISTED_MAX = 1_000;

/** `sk_sandbox_…` or `sk_live_…`: shown once, never stored. @see docs/decisions.md#keys */
export function makeKey(livemode: boolean): string {
  const secret = randomBytes(KEY_BYTES).toString('base64url');
  return `sk_${livemode ? 'live' : 'sandbox'}_${secret}`;
}

export function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

const FINGERPRINT_LENGTH = 16;

/** Lets a line of the audit log prove which key it is about. */
export function fingerprint(hash: string): string {
  return hash.slice(0, FINGERPRINT_LENGTH);
}

/** Keeps the time of an earlier revocation. @returns the key as it was before */
function revoke<D extends { revoked_at: string | null }>(
  keys: Collection<D>,
  filter: Filter<NoInfer<D>>,
  now: string,
  session?: ClientSession,
) {
  const update = [{ $set: { revoked_at: { $ifNull: ['$revoked_at', now] } } }];
  return keys.findOneAndUpdate(filter, update, { returnDocument: 'before', session });
}

export function createKeyStore(db: Db) {
  const keys = db.collection<KeyDocument>('api_keys');
  return {
    ensureIndexes: indexBuilder(keys, [
      { key: { hash: 1 }, name: 'hash', unique: true },
      { key: { account_id: 1, created_at: 1 }, name: 'account' },
    ]),
    insert: (key: KeyDocument, session?: ClientSession) => keys.insertOne(key, { session }),
    byHash: (hash: string) => keys.findOne({ hash }),
    /**
     * Valid keys before revoked ones, and of each the newest, within the limit; the result has the
     * oldest first. `livemode` undefined: both environments.
     */
    forAccount: async (account_id: string, livemode?: boolean) => {
      const owner = omitUndefined({ account_id, livemode });
      const read = (revoked_at: null | { $ne: null }) =>
        keys
          .find({ ...owner, revoked_at })
          .sort({ created_at: -1 })
          .limit(LISTED_MAX)
          .toArray();
      const [valid, revoked] = await Promise.all([read(null), read({ $ne: null })]);
      const listed = [...valid, ...revoked].slice(0, LISTED_MAX);
      return listed.sort((a, b) => a.created_at.localeCompare(b.created_at));
    },
    revoke: (
      _id: string,
      now: string,
      owner: { account_id?: string; livemode?: boolean } = {},
      session?: ClientSession,
    ) => revoke(keys, { _id, ...owner }, now, session),
    touch: async (key: KeyDocument, now: Date): Promise<void> => {
      const last = key.last_used_at === null ? 0 : Date.parse(key.last_used_at);
      if (now.getTime() - last < LAST_USED_PRECISION_MS) return;
      await keys.updateOne(
        { _id: key._id, last_used_at: key.last_used_at },
        { $set: { last_used_at: now.toISOString() } },
      );
    },
  };
}

export interface OperatorDocument {
  _id: string;
  name: string;
  role: OperatorRole;
  hash: string;
  /** Verifies the operator's lines of the audit log. */
  public_key: string;
  /** Operator who requested the key; absent of the first two. */
  created_by?: string;
  /** Place among the first two, which nobody approved. */
  first?: 1 | 2;
  created_at: string;
  revoked_at: string | null;
}

const OPERATORS_MAX = 1_000;

export function createOperatorStore(db: Db) {
  const operators = db.collection<OperatorDocument>('operators');
  return {
    ensureIndexes: indexBuilder(operators, [
      { key: { hash: 1 }, name: 'hash', unique: true },
      // Two at once cannot have the same place.
      { key: { first: 1 }, name: 'first', unique: true, sparse: true },
    ]),
    insert: (operator: OperatorDocument, session?: ClientSession) =>
      operators.insertOne(operator, { session }),
    listFirst: () => operators.find({ first: { $in: [1, 2] } }).toArray(),
    /** Never cached, so that a revocation takes effect at once. */
    byHash: (hash: string) => operators.findOne({ hash }),
    list: () => operators.find().sort({ created_at: 1, _id: 1 }).limit(OPERATORS_MAX).toArray(),
    revoke: (id: string, now: string, session?: ClientSession) =>
      revoke(operators, { _id: id }, now, session),
  };
}

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
  return {
    ensureIndexes: indexBuilder(keys, [
      { key: { connector: 1, created_at: 1 }, name: 'connector' },
    ]),
    insert: (key: ConnectorKeyDocument, session?: ClientSession) =>
      keys.insertOne(key, { session }),
    get: (id: string) => keys.findOne({ _id: id }),
    forConnector: (connector: string) =>
      keys.find({ connector }).sort({ created_at: 1, _id: 1 }).limit(KEYS_MAX).toArray(),
    /** Newest first; never cached, so that a revocation takes effect at once. */
    current: (connector: string) =>
      keys
        .find({ connector, revoked_at: null })
        .sort({ created_at: -1, _id: 1 })
        .limit(KEYS_MAX)
        .toArray(),
    revoke: (id: string, now: string, session?: ClientSession) =>
      revoke(keys, { _id: id }, now, session),
    page: (after: string, limit: number) => readPage<ConnectorKeyDocument>(keys, after, limit),
    reencrypt: (id: string, before: Encrypted, encrypted: Encrypted) =>
      keys.updateOne({ _id: id, ciphertext: before }, { $set: { ciphertext: encrypted } }),
  };
}
