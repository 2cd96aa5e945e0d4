import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { inTransaction } from '../../base/mongo';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import type { NewEntry } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import type { Audit } from '../../store/audit';
import { assertApproved } from './approval';
import { type PostDeps, type PostedBalance, postOnce } from './post-once';

/** Minor units. @see docs/decisions.md#sandbox */
const SANDBOX_FUNDS = {
  currencies: ['EUR', 'GBP', 'USD'],
  balances: { [MAIN_BALANCE]: 10_000_000, marketing: 1_000_000 },
} as const;

export interface FundDeps extends PostDeps {
  now: () => Date;
}

export interface Funding {
  account_id: string;
  livemode: boolean;
  /** The first funding creates it. */
  balance_account: string;
  currency: string;
  /** Minor units. */
  amount: number;
}

export interface FundingOptions {
  /** A repeat with the same id credits nothing; generated when absent. */
  id?: string | undefined;
  note?: {
    operator?: string | undefined;
    reason?: string | undefined;
    /** Second operator. */
    approved_by?: string | undefined;
  };
}

/**
 * Credits a balance with money from outside the product. A repeat with the same id returns the
 * unchanged balance.
 * @param creditLimit minor units above which a second operator approves on live
 * @throws ServiceError `approval_required`; `operation_id_used` when another funding has this id
 */
export async function fundBalance(
  deps: FundDeps & { audit: Audit; creditLimit?: number },
  funding: Funding,
  { id = `fund_${randomUUID()}`, note = {} }: FundingOptions = {},
): Promise<PostedBalance> {
  const { livemode, currency, amount } = funding;
  const { operator, approved_by } = note;
  const { creditLimit = Number.POSITIVE_INFINITY } = deps;
  assertApproved(creditLimit, { livemode, currency, amount, operator, approved_by });
  const storedNote = buildNote(note);
  const entry = { ...buildEntry(funding, id, deps.now()), note: storedNote };
  const after = { balance_account: funding.balance_account, currency, amount, ...storedNote };
  return await postOnce(deps, entry, { act: 'balance.funded', after }, funding.balance_account);
}

function buildNote({ operator, reason, approved_by }: NonNullable<FundingOptions['note']>) {
  if (operator === undefined && reason === undefined) return undefined;
  const approval = approved_by === undefined ? {} : { approved_by };
  return { operator: operator ?? null, reason: reason ?? null, ...approval };
}

/**
 * Posts the test funds of a new account once: their ids derive from the account.
 * @throws MongoServerError duplicate key when they are already posted
 */
export async function fundSandbox(deps: FundDeps, account_id: string): Promise<void> {
  // This may be the first write of the installation: nothing else creates the collections.
  await deps.stores.ledger.ensureIndexes();
  const at = deps.now();
  const entries = SANDBOX_FUNDS.currencies.flatMap((currency) =>
    Object.entries(SANDBOX_FUNDS.balances).map(([balance_account, amount]) => {
      const id = `sandbox_funds:${account_id}:${balance_account}:${currency}`;
      const funding = { account_id, livemode: false, balance_account, currency, amount };
      return buildEntry(funding, id, at);
    }),
  );
  const postAll = async (session: ClientSession): Promise<void> => {
    for (const entry of entries) await deps.stores.ledger.post(entry, session);
  };
  await inTransaction(deps.mongo, postAll);
}

function buildEntry(funding: Funding, resource_id: string, at: Date): NewEntry {
  const { account_id, livemode, balance_account, currency, amount } = funding;
  const lines = ENTRY_LINES.funded(balance_account, amount);
  return {
    kind: 'funded',
    resource_id,
    account_id,
    livemode,
    currency,
    legs: lines,
    at: at.toISOString(),
  };
}
