import { createHash, randomBytes } from 'node:crypto';
import type { ClientSession, Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { Scope } from '../domain/account/api-key';

/** API key. Only its hash is kept, a fast one, since the secret is 256 random bits. */
export interface KeyDocument {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** SHA-256 of the whole key, hex. */
  hash: string;
  /** Part of the key that people tell keys apart by. */
  last4: string;
  scopes: Scope[];
  created_at: string;
  revoked_at: string | null;
  /** Time from which it is refused; absent: none. */
  expires_at?: string;
  /** Networks that it may be used from; absent: any. */
  allowed_cidrs?: string[];
  last_used_at: string | null;
}

/** Account and environment, which a key stands for. */
export type KeyOwner = Pick<KeyDocument, 'account_id' | 'livemode'>;

const KEY_BYTES = 32;
/** Staleness of `last_used_at` that is let pass, so that a key is written once a minute at most. */
const LAST_USED_PRECISION_MS = 60_000;

/** `sk_sandbox_…` or `sk_live_…`: shown once, never stored. @see docs/decisions.md#keys */
export function makeKey(livemode: boolean): string {
  const secret = randomBytes(KEY_BYTES).toString('base64url');
  return `sk_${livemode ? 'live' : 'sandbox'}_${secret}`;
}

export function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

export function createKeyStore(db: Db) {
  const keys: Collection<KeyDocument> = db.collection<KeyDocument>('api_keys');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        keys,
        [
          { key: { hash: 1 }, name: 'hash', unique: true },
          { key: { account_id: 1, created_at: 1 }, name: 'account' },
        ],
        missing,
      ),
    insert: (key: KeyDocument, session?: ClientSession) => keys.insertOne(key, { session }),
    byHash: (hash: string) => keys.findOne({ hash }),
    forAccount: (account_id: string) =>
      keys.find({ account_id }).sort({ created_at: 1 }).limit(1_000).toArray(),
    /** Revokes from the next request on, and gives the key as it was; a second time keeps the first. */
    revoke: (
      id: string,
      now: string,
      owner: { account_id?: string; livemode?: boolean } = {},
      session?: ClientSession,
    ) =>
      keys.findOneAndUpdate(
        { _id: id, ...owner },
        [{ $set: { revoked_at: { $ifNull: ['$revoked_at', now] } } }],
        { returnDocument: 'before', session },
      ),
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
