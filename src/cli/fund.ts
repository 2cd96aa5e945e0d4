import { randomUUID } from 'node:crypto';
import type { ClientSession, MongoClient } from 'mongodb';
import { MAIN_BALANCE } from '../domain/balance-account';
import type { BalanceRow } from '../ledger/book';
import type { PostingDocument } from '../ledger/documents';
import { LEGS } from '../ledger/legs';
import { bookId, type NewPosting, operationId } from '../ledger/postings';
import { inTransaction, isDuplicateKey } from '../mongo';
import type { Stores } from '../store';
import type { Audit, Change } from '../store/audit';
import { assertApproved } from './approval';
import { CliFailure } from './failure';

/**
 * Test funds of a new account: each balance, in each currency; minor units.
 * @see docs/decisions.md#sandbox
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

/** Identity of a funding, and the notes kept beside it. */
export interface FundingOptions {
  /** Id under which a repeat credits nothing; made up where none is given. */
  id?: string | undefined;
  /** Reason that is kept on the posting. */
  note?: {
    operator?: string | undefined;
    reason?: string | undefined;
    /** Second operator. */
    approvedBy?: string | undefined;
  };
}

/** Balance after the funding, and the posting that holds it. */
export type Funded = BalanceRow & { operation_id: string };

/**
 * Credits a balance with money from outside the product: an operator's act. Each call credits anew,
 * unless its id was posted before: then nothing moves, and the balance is given as it is. Above
 * `creditLimit`, in minor units, a second operator approves on live.
 * @throws CliFailure `approval_required`; `operation_id_used` when that id stands for another funding
 */
export async function fundBalance(
  deps: FundDeps & { audit: Audit; creditLimit?: number },
  funding: Funding,
  { id = `fund_${randomUUID()}`, note = {} }: FundingOptions = {},
): Promise<Funded> {
  const { livemode, currency, amount } = funding;
  const { operator, approvedBy } = note;
  const { creditLimit = Number.POSITIVE_INFINITY } = deps;
  assertApproved(creditLimit, { livemode, currency, amount, operator, approvedBy });
  await deps.stores.ledger.ensureIndexes();
  const posting = { ...postingOf(funding, id, deps.now()), note: noteOf(note) };
  const operation_id = operationId(posting);
  try {
    const row = await inTransaction(deps.mongo, async (session) => {
      await deps.stores.ledger.post(posting, session);
      await deps.audit(fundingLine(posting, funding), session);
      return await deps.stores.ledger.balance(posting, funding.balance_account, session);
    });
    return { ...existing(row, funding), operation_id };
  } catch (error) {
    const posted = isDuplicateKey(error) ? await deps.stores.ledger.posting(operation_id) : null;
    if (posted === null) throw error;
    if (!isSame(posted, posting)) throw usedFor(posted);
    const rows = await deps.stores.ledger.balances(funding.account_id, funding.livemode);
    return { ...existing(rows.find(isOf(funding)), funding), operation_id };
  }
}

function fundingLine({ note, ...posting }: NewPosting, funding: Funding): Change {
  const { account_id, livemode, balance_account, currency, amount } = funding;
  const target = operationId(posting);
  const after = { balance_account, currency, amount, ...note };
  return { act: 'balance.funded', account_id, livemode, target, after };
}

function noteOf({ operator, reason, approvedBy }: NonNullable<FundingOptions['note']>) {
  if (operator === undefined && reason === undefined) return undefined;
  const approved = approvedBy === undefined ? {} : { approved_by: approvedBy };
  return { operator: operator ?? null, reason: reason ?? null, ...approved };
}

/** Whether a posting that is there is the one to be written. */
export function isSame(posted: PostingDocument, posting: NewPosting): boolean {
  const legs = (of: PostingDocument['legs'] | NewPosting['legs']) =>
    of.map(({ account, amount }) => `${account} ${amount}`).join();
  return posted.book === bookId(posting) && legs(posted.legs) === legs(posting.legs);
}

/** Refusal of an id under which something else was posted. */
export function usedFor({ _id, kind, book, legs, at }: PostingDocument): CliFailure {
  const posted = legs.map(({ account, amount }) => `${account} ${amount}`).join(', ');
  const noun = kind === 'funded' ? 'funding' : 'operation';
  return new CliFailure(
    'operation_id_used',
    `${_id} stands for another ${noun}, of ${at}: ${posted} in ${book}. Nothing was credited.`,
  );
}

function isOf({ balance_account, currency }: Funding) {
  return (row: BalanceRow) => row.balance_account === balance_account && row.currency === currency;
}

function existing(row: BalanceRow | null | undefined, { balance_account }: Funding): BalanceRow {
  if (row) return row;
  throw new Error(`${balance_account} is not there after its funding.`);
}

/**
 * Gives a new account its test funds, all of them or none. Their ids follow from the account, so
 * they are given once.
 * @throws MongoServerError duplicate key when they were given already
 */
export async function fundSandbox(deps: FundDeps, account_id: string): Promise<void> {
  // This may be the first write of all, and nothing else makes the collections.
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

function postingOf(funding: Funding, resource_id: string, at: Date): NewPosting {
  const { account_id, livemode, balance_account, currency, amount } = funding;
  const legs = LEGS.funded(balance_account, amount);
  return {
    kind: 'funded',
    resource_id,
    account_id,
    livemode,
    currency,
    legs,
    at: at.toISOString(),
  };
}
