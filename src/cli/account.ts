import { randomBytes, randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { SCOPES } from '../domain/api-key';
import { PAYMENT_METHOD_IDS, type PaymentMethodId } from '../domain/catalogue';
import type { FeeName } from '../domain/payout-fees';
import { isRailId, type RailId } from '../domain/rails';
import { PAYER_MONTHS } from '../domain/retention';
import { hashPassword } from '../keys/password';
import { createKey, type KeyDeps } from '../merchants/api-keys';
import { ownerOf } from '../merchants/staff';
import { inTransaction, isDuplicateKey } from '../mongo';
import type { Stores } from '../store';
import type { AccountDocument } from '../store/accounts';
import { reasonOf } from '../temporal/in-time';
import { CliFailure } from './failure';
import { type FundDeps, fundSandbox } from './fund';

const PASSWORD_BYTES = 16;

export interface AccountDeps extends FundDeps, KeyDeps {
  stores: Pick<Stores, 'accounts' | 'keys' | 'ledger' | 'users'>;
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
  const uuid = randomUUID();
  const created_at = deps.now().toISOString();
  const password = randomBytes(PASSWORD_BYTES).toString('hex');
  const account: AccountDocument = {
    _id: `acct_${uuid}`,
    name,
    crypto: false,
    enabled_methods: [...PAYMENT_METHOD_IDS],
    dashboard: {
      email: email?.toLowerCase() ?? `merchant-${uuid.slice(-12)}@dashboard.localhost`,
    },
    created_at,
  };
  await insertAccount(deps, account, await hashPassword(password));
  await giveTestFunds(deps, account._id);
  const forAll = { account_id: account._id, scopes: [...SCOPES] };
  const sandbox = await createKey(deps, { ...forAll, livemode: false });
  const live = await createKey(deps, { ...forAll, livemode: true });
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
  /** Minor units of the payout's currency; null removes a fee, and so does 0 that of a whole rail. */
  payoutFee?: { name: FeeName; fee: number | null }[];
  /** Months for which names and e-mail addresses of payers are kept. */
  payerDataMonths?: number;
  /** Minor units that may be paid out in a day, by currency; null removes a limit. */
  payoutLimit?: Record<string, number | null>;
}

/**
 * Updates an account, all of the changes or none.
 * @throws CliFailure `account_not_found`
 */
export async function updateAccount(
  {
    mongo,
    stores,
    audit,
  }: Pick<AccountDeps, 'mongo' | 'audit'> & { stores: Pick<Stores, 'accounts'> },
  id: string,
  change: AccountChange,
): Promise<AccountDocument> {
  return await inTransaction(mongo, async (session) => {
    const before = existing(await stores.accounts.get(id, session), id);
    const after = await makeChanges(stores.accounts, id, change, session);
    const line = { act: 'account.updated', account_id: id, livemode: null, target: id } as const;
    await audit({ ...line, before: settingsOf(before), after: settingsOf(after) }, session);
    return after;
  });
}

async function makeChanges(
  accounts: Stores['accounts'],
  id: string,
  {
    crypto,
    enableMethod = [],
    disableMethod = [],
    payoutFee = [],
    payoutLimit = {},
    payerDataMonths,
  }: AccountChange,
  session: ClientSession,
): Promise<AccountDocument> {
  if (crypto !== undefined) await accounts.setCrypto(id, crypto === 'on', session);
  for (const method of enableMethod) {
    if (isRailId(method)) await accounts.enableRail(id, method, session);
    else await accounts.enableMethod(id, method, session);
  }
  for (const method of disableMethod) {
    if (isRailId(method)) await accounts.disableRail(id, method, session);
    else await accounts.disableMethod(id, method, session);
  }
  for (const { name, fee } of payoutFee) await accounts.setPayoutFee(id, name, fee, session);
  if (payerDataMonths !== undefined)
    await accounts.setPayerDataMonths(id, payerDataMonths, session);
  for (const [currency, limit] of Object.entries(payoutLimit)) {
    await accounts.setPayoutLimit(id, currency, limit, session);
  }
  return existing(await accounts.get(id, session), id);
}

function settingsOf({ crypto, enabled_methods, ...account }: AccountDocument) {
  const { payer_data_months = PAYER_MONTHS } = account;
  const { disabled_rails = [], payout_fees = {}, payout_limits = {} } = account;
  const pairs = (of: object) => Object.entries(of).map(([name, minor]) => `${name}=${minor}`);
  const limits = pairs(payout_limits);
  return {
    ...{ crypto, enabled_methods, payer_data_months, disabled_rails },
    payout_fees: pairs(payout_fees),
    ...(limits.length === 0 ? {} : { payout_limits: limits }),
  };
}

/** Dependencies of a freeze. */
type FreezeDeps = Pick<AccountDeps, 'mongo' | 'audit' | 'now'> & {
  stores: Pick<Stores, 'accounts'>;
};

/**
 * Lets an account only read, or write again; what it has under way goes on, but no payout that the
 * bank has not got yet. A second time changes nothing.
 * @throws CliFailure `account_not_found`
 * @see docs/operators.md#freeze-an-account
 */
export async function setFrozen(
  { mongo, stores: { accounts }, audit, now }: FreezeDeps,
  id: string,
  { freeze, reason, operator }: { freeze: boolean; reason: string; operator?: string | undefined },
): Promise<AccountDocument> {
  return await inTransaction(mongo, async (session) => {
    existing(await accounts.get(id, session), id);
    const at = now().toISOString();
    const { modifiedCount } = freeze
      ? await accounts.freeze(id, { at, reason }, session)
      : await accounts.unfreeze(id, session);
    const act = freeze ? 'account.frozen' : 'account.unfrozen';
    const line = { act, account_id: id, livemode: null, target: id } as const;
    if (modifiedCount > 0) await audit({ ...line, after: { reason, operator } }, session);
    return existing(await accounts.get(id, session), id);
  });
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
  { mongo, stores, audit }: AccountDeps,
  account: AccountDocument,
  password_hash: string,
): Promise<void> {
  // Before the service has ever run, nothing else would hold the e-mail address unique.
  await stores.accounts.ensureIndexes();
  await stores.users.ensureIndexes();
  const { _id, name, dashboard } = account;
  const { email } = dashboard;
  try {
    await inTransaction(mongo, async (session) => {
      await stores.accounts.insert(account, session);
      await stores.users.insert(ownerOf(account, password_hash), session);
      const line = {
        act: 'account.created',
        account_id: _id,
        livemode: null,
        target: _id,
      } as const;
      await audit({ ...line, after: { name, email } }, session);
    });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
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
