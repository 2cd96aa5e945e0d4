import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { z } from 'zod';
import { describeError } from '../../base/errors';
import { inTransaction, isDuplicateKey } from '../../base/mongo';
import { ServiceError } from '../../domain/errors';
import { FEE_BEARERS } from '../../domain/merchants/acquirer-fee';
import { SCOPES } from '../../domain/merchants/api-key';
import type { AuditFacts } from '../../domain/operators/audit-log';
import { PAYER_MONTHS } from '../../domain/operators/retention';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { type FeeName, parseFeeName } from '../../domain/payout/payout';
import { RAIL_IDS } from '../../domain/payout/rails';
import type { Stores } from '../../store';
import type { AccountDocument } from '../../store/accounts';
import { waitForCaches } from '../../store/cache';
import type { UserDocument } from '../../store/users';
import type { WriteDeps } from '../access';
import { fundSandbox } from '../money/balances/fund';
import { toFirstRows } from '../paging';
import { createKey } from './keys';
import { notifyOwners } from './mail/outbox';
import { buildOwner, createInitialPassword } from './team/members';

export type { AccountDocument } from '../../store/accounts';

interface NewAccount {
  name: string;
  /** Generated when absent. */
  email?: string | undefined;
  /** The password is the caller's own, who goes on with it. */
  keep_password?: boolean | undefined;
}

/**
 * Creates a merchant. Keys and password are shown once: only hashes are stored.
 * @throws ServiceError `email_taken`; `funding_failed`, before any key is created
 */
export async function createAccount(
  deps: WriteDeps,
  { name, email, keep_password = false }: NewAccount,
) {
  const uuid = randomUUID();
  const created_at = deps.now().toISOString();
  const { password, password_hash, ...expiry } = await createInitialPassword(deps.now());
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
  const login = { password_hash, ...(keep_password ? {} : expiry) };
  await insertAccount(deps, account, login);
  await fundSandbox(deps, account._id).catch((error: unknown) => {
    const message =
      `The account ${account._id} is not usable: its test funds could not be posted, so it got no ` +
      `keys. Create another account. ${describeError(error)}`;
    throw new ServiceError('funding_failed', message);
  });
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

const OnOff = z.enum(['on', 'off']).optional();
const Methods = z.array(z.enum([...PAYMENT_METHOD_IDS, ...RAIL_IDS])).optional();
/** Minor units by currency; null removes a limit. */
const Limits = z.record(z.string(), z.number().nullable()).optional();

/** Stored in an approval, too. */
export const AccountChange = z.object({
  crypto: OnOff,
  enable_method: Methods,
  disable_method: Methods,
  /** Minor units; null removes a fee, and 0 that of a whole rail. */
  payout_fee: z
    .array(
      z.object({
        name: z.custom<FeeName>((name) => parseFeeName(String(name)) !== undefined),
        fee: z.number().nullable(),
      }),
    )
    .optional(),
  payer_data_months: z.number().optional(),
  /** Per day. */
  payout_limit: Limits,
  /** Debt with which it still pays out. */
  owed_limit: Limits,
  /** Above it, a live refund in the dashboard has a step-up. */
  refund_step_up: Limits,
  /** Whether payouts to who was not verified wait, once their file was withdrawn. */
  hold_unverified: OnOff,
  /** Percent, of payments that are created from then on. */
  crypto_tolerance: z.number().optional(),
  /** Bears what acquirers keep, of what they report from then on. */
  acquirer_fee: z.enum(FEE_BEARERS).optional(),
});
type AccountChange = z.infer<typeof AccountChange>;

type Brakes = Pick<
  AccountDocument,
  'payout_limits' | 'owed_limits' | 'refund_step_up' | 'hold_unverified'
>;

/**
 * Whether a change raises a limit or switches off a brake.
 * @see docs/operators.md#approvals
 */
export function liftsBrake(account: Brakes, change: AccountChange): boolean {
  const { payout_limits = {}, owed_limits = {}, refund_step_up = {} } = account;
  // Once one currency has a limit of payouts, every other has the limit 0.
  const isLimited = Object.keys(payout_limits).length > 0;
  const raises = (
    limits: Record<string, number>,
    changed: typeof change.owed_limit,
    usual: number,
  ) =>
    Object.entries(changed ?? {}).some(([currency, limit]) =>
      limit === null ? currency in limits : limit > (limits[currency] ?? usual),
    );
  return (
    (change.hold_unverified === 'off' && account.hold_unverified === true) ||
    raises(payout_limits, change.payout_limit, isLimited ? 0 : Number.POSITIVE_INFINITY) ||
    raises(owed_limits, change.owed_limit, 0) ||
    raises(refund_step_up, change.refund_step_up, Number.POSITIVE_INFINITY)
  );
}

/**
 * Applies all changes, or none.
 * @param mayLift whether a limit may be raised, as another operator has approved
 * @throws ServiceError `account_not_found`, `approval_differs`
 */
export async function updateAccount(
  { mongo, stores, audit, now }: WriteDeps,
  id: string,
  change: AccountChange,
  { mayLift }: { mayLift: boolean },
): Promise<AccountDocument> {
  const updated = await inTransaction(mongo, async (session) => {
    const before = requireAccount(await stores.accounts.get(id, session), id);
    if (!mayLift && liftsBrake(before, change)) {
      const message = 'The limits have changed meanwhile, so that this raises one: repeat it.';
      throw new ServiceError('approval_differs', message);
    }
    const after = await applyChanges(stores.accounts, id, change, session);
    const line = { act: 'account.updated', account_id: id, livemode: null, target: id } as const;
    const [earlier, current] = [presentSettings(before), presentSettings(after)];
    await audit({ ...line, before: earlier, after: current }, session);
    const [from, to] = [earlier.payout_limits.join(', '), current.payout_limits.join(', ')];
    if (from === to) return after;
    const subject = { kind: 'payout_limit_changed', before: from, after: to } as const;
    await notifyOwners({ stores, now }, id, subject, session);
    return after;
  });
  // Reads of crypto go by a cached account.
  if (change.crypto === 'off') await waitForCaches();
  return updated;
}

async function applyChanges(
  accounts: Stores['accounts'],
  id: string,
  change: AccountChange,
  session: ClientSession,
): Promise<AccountDocument> {
  const { crypto, hold_unverified: hold, crypto_tolerance: tolerance } = change;
  const { acquirer_fee: bearer, payer_data_months: months } = change;
  const { enable_method = [], disable_method = [], payout_fee = [] } = change;
  if (crypto !== undefined) await accounts.setCrypto(id, crypto === 'on', session);
  if (hold !== undefined) await accounts.setHoldUnverified(id, hold === 'on', session);
  if (tolerance !== undefined) await accounts.setCryptoTolerance(id, tolerance, session);
  if (bearer !== undefined) await accounts.setAcquirerFee(id, bearer, session);
  if (months !== undefined) await accounts.setPayerDataMonths(id, months, session);
  for (const method of enable_method) await accounts.enable(id, method, true, session);
  for (const method of disable_method) await accounts.enable(id, method, false, session);
  for (const { name, fee } of payout_fee) await accounts.setPayoutFee(id, name, fee, session);
  const limits = [
    ['payout_limits', change.payout_limit],
    ['owed_limits', change.owed_limit],
    ['refund_step_up', change.refund_step_up],
  ] as const;
  for (const [name, byCurrency = {}] of limits) {
    for (const [currency, limit] of Object.entries(byCurrency)) {
      await accounts.setLimit(id, `${name}.${currency}`, limit, session);
    }
  }
  return requireAccount(await accounts.get(id, session), id);
}

/** Presents every setting, so that a line of the audit log states what it removed. */
export function presentSettings({ crypto, enabled_methods, ...account }: AccountDocument) {
  const { payer_data_months = PAYER_MONTHS, hold_unverified = false } = account;
  const { crypto_tolerance = 0, acquirer_fee = 'service' } = account;
  const { disabled_rails = [], payout_fees, payout_limits, owed_limits, refund_step_up } = account;
  const pairs = (values: object = {}) =>
    Object.entries(values).map(([name, minor]) => `${name}=${minor}`);
  return {
    ...{ crypto, enabled_methods, payer_data_months, disabled_rails, hold_unverified },
    ...{ crypto_tolerance, acquirer_fee },
    payout_fees: pairs(payout_fees),
    payout_limits: pairs(payout_limits),
    owed_limits: pairs(owed_limits),
    refund_step_up: pairs(refund_step_up),
  };
}

/** Whether settings lift a brake of earlier ones, both as in a line of the audit log. */
export function liftsPresented(before: AuditFacts, after: AuditFacts): boolean {
  const readLimits = (fact: AuditFacts[string]) =>
    Object.fromEntries(
      (Array.isArray(fact) ? fact : []).map((pair: string): [string, number] => {
        const [currency = '', minor] = pair.split('=');
        return [currency, Number(minor)];
      }),
    );
  const read = (facts: AuditFacts) => ({
    payout_limits: readLimits(facts['payout_limits']),
    owed_limits: readLimits(facts['owed_limits']),
    refund_step_up: readLimits(facts['refund_step_up']),
    hold_unverified: facts['hold_unverified'] === true,
  });
  const [earlier, later] = [read(before), read(after)];
  const change = (from: Record<string, number>, to: Record<string, number>) => ({
    ...Object.fromEntries(Object.keys(from).map((currency) => [currency, null])),
    ...to,
  });
  return liftsBrake(earlier, {
    payout_limit: change(earlier.payout_limits, later.payout_limits),
    owed_limit: change(earlier.owed_limits, later.owed_limits),
    refund_step_up: change(earlier.refund_step_up, later.refund_step_up),
    hold_unverified: later.hold_unverified ? 'on' : 'off',
  });
}

interface FreezeChange {
  freeze: boolean;
  reason: string;
  operator?: string | undefined;
  /** Freeze that may be lifted, and no later one. */
  frozen_at?: string;
}

/**
 * Payments in progress continue; payouts that the bank has not received do not. Returns when no
 * process takes writes of the account any more.
 * @throws ServiceError `account_not_found`, `approval_differs`
 * @see docs/operators.md#freeze-an-account
 */
export async function setFrozen(
  { mongo, stores: { accounts }, audit, now }: WriteDeps,
  id: string,
  { freeze, reason, operator, frozen_at }: FreezeChange,
): Promise<AccountDocument> {
  const changed = await inTransaction(mongo, async (session) => {
    const { frozen } = requireAccount(await accounts.get(id, session), id);
    if (frozen_at !== undefined && frozen !== undefined && frozen.at !== frozen_at) {
      const message = `The account was frozen again at ${frozen.at}: ask again.`;
      throw new ServiceError('approval_differs', message);
    }
    const at = now().toISOString();
    const { modifiedCount } = freeze
      ? await accounts.freeze(id, { at, reason }, session)
      : await accounts.unfreeze(id, session);
    const act = freeze ? 'account.frozen' : 'account.unfrozen';
    const line = { act, account_id: id, livemode: null, target: id } as const;
    if (modifiedCount > 0) await audit({ ...line, after: { reason, operator } }, session);
    return requireAccount(await accounts.get(id, session), id);
  });
  // Writes go by a cached account.
  if (freeze) await waitForCaches();
  return changed;
}

export async function listAccounts({ accounts }: Pick<Stores, 'accounts'>, limit: number) {
  return toFirstRows(await accounts.list(limit + 1), limit);
}

export async function findAccount({ accounts }: Pick<Stores, 'accounts'>, id: string) {
  return requireAccount(await accounts.get(id), id);
}

function requireAccount(account: AccountDocument | null, id: string): AccountDocument {
  if (account !== null) return account;
  throw new ServiceError('account_not_found', `There is no account ${id}.`);
}

async function insertAccount(
  { mongo, stores, audit }: WriteDeps,
  account: AccountDocument,
  login: Pick<UserDocument, 'password_hash' | 'password_expires_at'>,
): Promise<void> {
  // Before the first start, no index makes the e-mail address unique.
  await stores.accounts.ensureIndexes();
  await stores.users.ensureIndexes();
  const { _id, name, dashboard } = account;
  const { email } = dashboard;
  const emailTaken = () =>
    new ServiceError('email_taken', `Another account has the dashboard login ${email}.`);
  // A user of several merchants is invited to each.
  if ((await stores.users.byEmail(email)).length > 0) throw emailTaken();
  try {
    await inTransaction(mongo, async (session) => {
      await stores.accounts.insert(account, session);
      const owner = buildOwner(account, login);
      await stores.users.insert(owner, session);
      const line = { act: 'account.created', account_id: _id, livemode: null } as const;
      const after = { name, email, owner: owner._id, ...presentSettings(account) };
      await audit({ ...line, target: _id, after }, session);
    });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    throw emailTaken();
  }
}
