import type { MongoClient } from 'mongodb';
import type { Logger } from '../base/log';
import type { CallbackInbox } from '../callbacks/inbox';
import type { Config } from '../config';
import { Refusal } from '../domain/errors';
import type { Encrypter } from '../encryption/encrypter';
import type { RecipientEncrypters } from '../encryption/recipient-keys';
import type { ServiceKeys } from '../encryption/service-keys';
import type { Connectors } from '../routing';
import type { Stores } from '../store';
import type { AccountDocument } from '../store/accounts';
import type { Audit } from '../store/audit';
import { hashKey, type KeyDocument } from '../store/keys';
import type { TemporalClient } from '../temporal/client';
import type { Payers } from './money/payers';
import type { RunInShare } from './shares';

export interface ServiceDeps {
  mongo: MongoClient;
  stores: Stores;
  encrypter: Encrypter;
  payers: Pick<Payers, 'decrypt'>;
  now: () => Date;
}

export interface MerchantDeps extends ServiceDeps {
  config: Pick<Config, 'PUBLIC_URL'> & Partial<Pick<Config, 'CRYPTO_WINDOWS'>>;
  temporal: TemporalClient;
  callbacks: CallbackInbox;
  connectors: Connectors;
  /** Page tokens; fingerprints of requests. */
  keys: Pick<ServiceKeys, 'pay_token' | 'fingerprint'>;
  /** Public keys, which cannot decrypt. */
  recipientEncrypters: RecipientEncrypters;
  payers: Payers;
  /** Shared by the API and the dashboard. */
  runInShare: RunInShare;
  log: Logger;
}

/** `audit` names the acting team member or operator. */
export interface ActDeps extends ServiceDeps {
  audit: Audit;
}

export type WriteDeps = Pick<ActDeps, 'mongo' | 'stores' | 'audit' | 'now'>;

export interface Owner {
  account_id: string;
  livemode: boolean;
}

export { hashKey } from '../store/keys';
export type ApiKey = KeyDocument;

type AccessDeps = Pick<MerchantDeps, 'stores' | 'now'>;

/** Any other text is not looked up. @see docs/decisions.md#keys */
const KEY_FORM = /^sk_(sandbox|live)_[\w-]{43}$/;

/** @throws Refusal 401 `api_key_invalid` */
export async function findKey({ stores }: AccessDeps, secret: string): Promise<ApiKey> {
  const key = KEY_FORM.test(secret) ? await stores.keys.byHash(hashKey(secret)) : null;
  if (key === null) throw new Refusal('api_key_invalid', 'This API key is not known.');
  return key;
}

/** @throws Refusal 401 `api_key_revoked`, `api_key_expired` */
export function assertValidKey({ now }: Pick<AccessDeps, 'now'>, key: ApiKey): void {
  if (key.revoked_at !== null) {
    throw new Refusal('api_key_revoked', 'This API key has been revoked.');
  }
  if (key.expires_at !== undefined && key.expires_at <= now().toISOString()) {
    throw new Refusal('api_key_expired', `This API key has expired at ${key.expires_at}.`);
  }
}

/** Runs in the background: it must neither delay nor fail a request. */
export function recordKeyUse(
  { stores, now, log }: AccessDeps & Pick<MerchantDeps, 'log'>,
  key: ApiKey,
): void {
  stores.keys.touch(key, now()).catch((err) => log.warn({ err }, 'last use not recorded'));
}

/**
 * Refuses every write; payments in progress continue. It reads the account again, for the rest of
 * the request too.
 * @throws Refusal 403 `account_frozen`
 * @see docs/operators.md#freeze-an-account
 */
export async function assertNotFrozen(
  { stores }: Pick<MerchantDeps, 'stores'>,
  { account_id }: Owner,
): Promise<void> {
  refuseFrozen(await stores.accounts.refresh(account_id));
}

/** @throws Refusal 403 `account_frozen` */
export function refuseFrozen(account: Pick<AccountDocument, 'frozen'> | null): void {
  if (!account?.frozen) return;
  throw new Refusal('account_frozen', 'This account is frozen: it can only read. Ask us why.');
}

/** @throws Refusal 403 without crypto on the account */
export async function assertCryptoEnabled(
  { stores }: Pick<MerchantDeps, 'stores'>,
  { account_id }: Owner,
): Promise<void> {
  const cached = await stores.accounts.getCached(account_id);
  if (cached?.crypto === true || (await stores.accounts.refresh(account_id))?.crypto) return;
  throw new Refusal('crypto_not_enabled', 'Crypto is not enabled on this account.');
}
