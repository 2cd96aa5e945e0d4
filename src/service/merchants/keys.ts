import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../base/mongo';
import { omitUndefined } from '../../domain/defined';
import type { Scope } from '../../domain/merchants/api-key';
import { fingerprint, hashKey, type KeyDocument, makeKey } from '../../store/keys';
import type { Owner, WriteDeps } from '../access';
import { notifyOwners } from './mail/outbox';

export interface NewKey {
  account_id: string;
  livemode: boolean;
  scopes: Scope[];
  /** ISO 8601, ms; undefined: never. */
  expires_at?: string | undefined;
  /** Undefined: any network. */
  allowed_cidrs?: string[] | undefined;
  /** A repeat with the same id creates no second key. */
  id?: string;
}

/**
 * Creates a key, which is shown once.
 * @see docs/decisions.md#keys
 * @throws MongoServerError duplicate key when the id is already used
 */
export async function createKey(
  { mongo, stores, audit, now }: WriteDeps,
  { account_id, livemode, scopes, id = `key_${randomUUID()}`, ...bounds }: NewKey,
): Promise<{ key_id: string; key: string }> {
  const key = makeKey(livemode);
  const last4 = key.slice(-4);
  const hash = hashKey(key);
  const document: KeyDocument = {
    _id: id,
    account_id,
    livemode,
    hash,
    last4,
    scopes,
    created_at: now().toISOString(),
    revoked_at: null,
    last_used_at: null,
    ...omitUndefined(bounds),
  };
  await inTransaction(mongo, async (session) => {
    await stores.keys.insert(document, session);
    const change = { act: 'api_key.created', account_id, livemode, target: id } as const;
    await audit(
      { ...change, after: { last4, fingerprint: fingerprint(hash), scopes, ...bounds } },
      session,
    );
    if (!livemode) return;
    const subject = { kind: 'live_key_created', key_id: id, last4 } as const;
    await notifyOwners({ stores, now }, account_id, subject, session);
  });
  return { key_id: id, key };
}

export type ListedKey = Omit<KeyDocument, 'hash'>;

/** Newest first; `livemode` undefined: both environments. */
export async function listKeys(
  { stores }: Pick<WriteDeps, 'stores'>,
  { account_id, livemode }: Pick<Owner, 'account_id'> & Partial<Owner>,
): Promise<ListedKey[]> {
  return (await stores.keys.forAccount(account_id, livemode)).toReversed();
}

/**
 * Revokes from the next request on.
 * @returns null when there is no such key
 * @param owner account and environment that it must belong to, if known
 */
export async function revokeKey(
  { mongo, stores, audit, now }: WriteDeps,
  id: string,
  owner: { account_id?: string; livemode?: boolean } = {},
): Promise<KeyDocument | null> {
  return await inTransaction(mongo, async (session) => {
    const at = now().toISOString();
    const before = await stores.keys.revoke(id, at, owner, session);
    if (before === null || before.revoked_at !== null) return before;
    const { account_id, livemode, last4 } = before;
    const change = { act: 'api_key.revoked', account_id, livemode, target: id } as const;
    await audit(
      { ...change, before: { last4, revoked_at: null }, after: { revoked_at: at } },
      session,
    );
    return { ...before, revoked_at: at };
  });
}
