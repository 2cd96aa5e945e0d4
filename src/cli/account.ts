import { randomBytes, randomUUID } from 'node:crypto';
import { hash } from '@node-rs/argon2';
import { SCOPES, type Scope } from '../domain/api-key';
import { PAYMENT_METHOD_IDS, type PaymentMethodId } from '../domain/catalogue';
import { isRailId, RAIL_IDS, type RailId } from '../domain/rails';
import { isDuplicateKey } from '../mongo';
import type { Stores } from '../store';
import type { AccountDocument } from '../store/accounts';
import { hashKey, type KeyDocument, makeKey } from '../store/keys';
import { CliFailure, reasonOf } from './failure';
import { type FundDeps, fundSandbox } from './fund';

const PASSWORD_BYTES = 16;
/** Least cost of argon2id by OWASP; it is the library's default algorithm. */
const PASSWORD_HASH = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

export interface AccountDeps extends FundDeps {
  stores: Pick<Stores, 'accounts' | 'keys' | 'ledger'>;
}

export interface NewAccount {
  name: string;
  /** Login of the dashboard, kept in lower case; made up when it is left out. */
  email?: string | undefined;
}

/** New account. Keys and password are shown this once, since only their hashes are kept. */
export interface CreatedAccount {
  account_id: string;
  sandbox_key: string;
  live_key: string;
  dashboard_email: string;
  dashboard_password: string;
}

/**
 * Creates a merchant with a key of all scopes in each environment, a dashboard login and test funds
 * in the sandbox. Every method of the catalogue and every rail is enabled; crypto is off.
 * @throws CliFailure `email_taken`; `funding_failed`, before any key is made
 */
export async function createAccount(
  deps: AccountDeps,
  { name, email }: NewAccount,
): Promise<CreatedAccount> {
  const { stores, now } = deps;
  const uuid = randomUUID();
  const created_at = now().toISOString();
  const password = randomBytes(PASSWORD_BYTES).toString('hex');
  const account: AccountDocument = {
    _id: `acct_${uuid}`,
    name,
    crypto: false,
    enabled_methods: [...PAYMENT_METHOD_IDS],
    dashboard: {
      email: email?.toLowerCase() ?? `merchant-${uuid.slice(-12)}@dashboard.localhost`,
      password_hash: await hash(password, PASSWORD_HASH),
    },
    created_at,
  };
  await insertAccount(stores, account);
  await giveTestFunds(deps, account._id);
  const forAll = { account_id: account._id, scopes: [...SCOPES] };
  const sandbox = await addKey({ stores, now }, { ...forAll, livemode: false });
  const live = await addKey({ stores, now }, { ...forAll, livemode: true });
  return {
    account_id: account._id,
    sandbox_key: sandbox.key,
    live_key: live.key,
    dashboard_email: account.dashboard.email,
    dashboard_password: password,
  };
}

/** Changes of `account update`. */
export interface AccountChange {
  crypto?: 'on' | 'off';
  enableMethod?: (PaymentMethodId | RailId)[];
  disableMethod?: (PaymentMethodId | RailId)[];
  /** Minor units of the payout's currency, by rail; 0 removes a fee. */
  payoutFee?: Partial<Record<RailId, number>>;
}

/**
 * Updates an account step by step, so that a change made meanwhile is not lost.
 * @throws CliFailure `account_not_found`
 */
export async function updateAccount(
  { accounts }: Pick<Stores, 'accounts'>,
  id: string,
  { crypto, enableMethod = [], disableMethod = [], payoutFee = {} }: AccountChange,
): Promise<AccountDocument> {
  const { enableMethod: enable, disableMethod: disable, enableRail, disableRail } = accounts;
  let account = existing(await accounts.get(id), id);
  if (crypto !== undefined) account = existing(await accounts.setCrypto(id, crypto === 'on'), id);
  for (const method of enableMethod) {
    account = existing(await (isRailId(method) ? enableRail(id, method) : enable(id, method)), id);
  }
  for (const method of disableMethod) {
    account = existing(
      await (isRailId(method) ? disableRail(id, method) : disable(id, method)),
      id,
    );
  }
  for (const rail of RAIL_IDS) {
    const fee = payoutFee[rail];
    if (fee !== undefined) account = existing(await accounts.setPayoutFee(id, rail, fee), id);
  }
  return account;
}

/**
 * Creates one more key of an account. An account may have several per environment, each shown once.
 * @see docs/decisions.md#keys
 */
export async function addKey(
  { stores, now }: { stores: Pick<Stores, 'keys'>; now: () => Date },
  { account_id, livemode, scopes }: { account_id: string; livemode: boolean; scopes: Scope[] },
): Promise<{ key_id: string; key: string }> {
  const key = makeKey(livemode);
  const document: KeyDocument = {
    _id: `key_${randomUUID()}`,
    account_id,
    livemode,
    hash: hashKey(key),
    last4: key.slice(-4),
    scopes,
    created_at: now().toISOString(),
    revoked_at: null,
    last_used_at: null,
  };
  await stores.keys.insert(document);
  return { key_id: document._id, key };
}

/** @throws CliFailure `account_not_found` */
export async function findAccount(
  { accounts }: Pick<Stores, 'accounts'>,
  id: string,
): Promise<AccountDocument> {
  return existing(await accounts.get(id), id);
}

/** @throws CliFailure `account_not_found` */
function existing(account: AccountDocument | null, id: string): AccountDocument {
  if (account !== null) return account;
  throw new CliFailure('account_not_found', `There is no account ${id}.`);
}

async function insertAccount(
  { accounts }: Pick<Stores, 'accounts'>,
  account: AccountDocument,
): Promise<void> {
  // Before the service has ever run, nothing else would hold the e-mail address unique.
  await accounts.ensureIndexes();
  try {
    await accounts.insert(account);
  } catch (error) {
    if (!isDuplicateKey(error, 'dashboard_email')) throw error;
    const { email } = account.dashboard;
    throw new CliFailure('email_taken', `Another account has the dashboard login ${email}.`);
  }
}

async function giveTestFunds(deps: AccountDeps, id: string): Promise<void> {
  try {
    await fundSandbox(deps, id);
  } catch (error) {
    throw new CliFailure(
      'funding_failed',
      `The account ${id} is not usable: its test funds could not be posted, so it got no keys. ` +
        `Make another one. ${reasonOf(error)}`,
    );
  }
}
