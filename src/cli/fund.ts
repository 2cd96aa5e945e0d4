import { randomUUID } from 'node:crypto';
import type { ClientSession, MongoClient } from 'mongodb';
import { LEGS, MAIN_BALANCE, operationId, type PostingOf } from '../domain/ledger';
import { inTransaction } from '../mongo';
import type { Stores } from '../store';
import type { BalanceRow } from '../store/ledger';

/**
 * What the sandbox of a new account starts with: each balance, in each currency; minor units.
 * Decided: "Sandbox".
 */
export const SANDBOX_FUNDS = {
  currencies: ['EUR', 'GBP', 'USD'],
  balances: { [MAIN_BALANCE]: 10_000_000, marketing: 1_000_000 },
} as const;

export interface FundDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'ledger'>;
  now: () => Date;
}

export interface Funding {
  account_id: string;
  livemode: boolean;
  /** Name of the balance account; the first funding makes it. */
  balance_account: string;
  currency: string;
  /** Minor units. */
  amount: number;
}

/** The balance as this very funding left it, and the posting that holds it. */
export type Funded = BalanceRow & { operation_id: string };

/** Credits a balance with money from outside the product: an operator's act, each time anew. */
export async function fundBalance(deps: FundDeps, funding: Funding): Promise<Funded> {
  await deps.stores.ledger.ensureIndexes();
  const posting = postingOf(funding, `fund_${randomUUID()}`, deps.now());
  const row = await inTransaction(deps.mongo, async (session) => {
    await deps.stores.ledger.post(posting, session);
    return await deps.stores.ledger.balance(posting, funding.balance_account, session);
  });
  if (row === null) throw new Error(`${funding.balance_account} is not there after its funding.`);
  return { ...row, operation_id: operationId(posting) };
}

/**
 * The test funds of a new account, all of them or none. Their ids follow from the account, so they
 * are given once.
 * @throws MongoServerError duplicate key when they were given already
 */
export async function fundSandbox(deps: FundDeps, account_id: string): Promise<void> {
  // A transaction may be the first to write; nothing else would have made the collections.
  await deps.stores.ledger.ensureIndexes();
  const at = deps.now();
  const postings = SANDBOX_FUNDS.currencies.flatMap((currency) =>
    Object.entries(SANDBOX_FUNDS.balances).map(([balance_account, amount]) => {
      const id = `sandbox_funds:${account_id}:${balance_account}:${currency}`;
      const funding = { account_id, livemode: false, balance_account, currency, amount };
      return postingOf(funding, id, at);
    }),
  );
  const postAll = async (session: ClientSession): Promise<void> => {
    for (const posting of postings) await deps.stores.ledger.post(posting, session);
  };
  await inTransaction(deps.mongo, postAll);
}

function postingOf(funding: Funding, resource_id: string, at: Date): PostingOf {
  const { account_id, livemode, balance_account, currency, amount } = funding;
  const legs = LEGS.funded(balance_account, amount);
  return {
    ...{ kind: 'funded', resource_id, account_id, livemode, currency, legs },
    at: at.toISOString(),
  };
}
