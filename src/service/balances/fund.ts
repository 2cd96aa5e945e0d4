import { randomUUID } from 'node:crypto';
import type { ClientSession, MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../base/mongo';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { ServiceError } from '../../domain/errors';
import type { BalanceRow } from '../../ledger/book';
import type { EntryDocument } from '../../ledger/documents';
import { bookId, type NewEntry, operationId } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import type { Stores } from '../../store';
import type { Audit, Change } from '../../store/audit';
import { assertApproved } from './approval';

/** Minor units. @see docs/decisions.md#sandbox */
const SANDBOX_FUNDS = {
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

export type FundingResult = BalanceRow & { operation_id: string };

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
): Promise<FundingResult> {
  const { livemode, currency, amount } = funding;
  const { operator, approved_by } = note;
  const { creditLimit = Number.POSITIVE_INFINITY } = deps;
  assertApproved(creditLimit, { livemode, currency, amount, operator, approved_by });
  await deps.stores.ledger.ensureIndexes();
  const entry = { ...buildEntry(funding, id, deps.now()), note: buildNote(note) };
  const operation_id = operationId(entry);
  try {
    const row = await inTransaction(deps.mongo, async (session) => {
      await deps.stores.ledger.post(entry, session);
      await deps.audit(buildAuditLine(entry, funding), session);
      return await deps.stores.ledger.balance(entry, funding.balance_account, session);
    });
    return { ...requireBalance(row, funding), operation_id };
  } catch (error) {
    const storedEntry = isDuplicateKey(error)
      ? await deps.stores.ledger.findEntry(operation_id)
      : null;
    if (storedEntry === null) throw error;
    if (!isSameEntry(storedEntry, entry)) throw createIdUsedFailure(storedEntry);
    const rows = await deps.stores.ledger.balances(funding.account_id, funding.livemode);
    return { ...requireBalance(rows.find(matchesFunding(funding)), funding), operation_id };
  }
}

function buildAuditLine({ note, ...entry }: NewEntry, funding: Funding): Change {
  const { account_id, livemode, balance_account, currency, amount } = funding;
  const target = operationId(entry);
  const after = { balance_account, currency, amount, ...note };
  return { act: 'balance.funded', account_id, livemode, target, after };
}

function buildNote({ operator, reason, approved_by }: NonNullable<FundingOptions['note']>) {
  if (operator === undefined && reason === undefined) return undefined;
  const approval = approved_by === undefined ? {} : { approved_by };
  return { operator: operator ?? null, reason: reason ?? null, ...approval };
}

export function isSameEntry(storedEntry: EntryDocument, entry: NewEntry): boolean {
  const formatLines = (lines: EntryDocument['legs'] | NewEntry['legs']) =>
    lines.map(({ account, amount }) => `${account} ${amount}`).join();
  return (
    storedEntry.book === bookId(entry) && formatLines(storedEntry.legs) === formatLines(entry.legs)
  );
}

export function createIdUsedFailure({
  _id,
  kind,
  book,
  legs: lines,
  at,
}: EntryDocument): ServiceError {
  const linesText = lines.map(({ account, amount }) => `${account} ${amount}`).join(', ');
  const noun = kind === 'funded' ? 'funding' : 'operation';
  return new ServiceError(
    'operation_id_used',
    `${_id} is the id of another ${noun}, of ${at}: ${linesText} in ${book}. Nothing was credited.`,
  );
}

function matchesFunding({ balance_account, currency }: Funding) {
  return (row: BalanceRow) => row.balance_account === balance_account && row.currency === currency;
}

function requireBalance(
  row: BalanceRow | null | undefined,
  { balance_account }: Funding,
): BalanceRow {
  if (row) return row;
  throw new Error(`${balance_account} does not exist after its funding.`);
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
