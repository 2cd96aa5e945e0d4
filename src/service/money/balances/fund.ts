import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../../base/mongo';
import { ServiceError } from '../../../domain/errors';
import { MAIN_BALANCE } from '../../../domain/money/money';
import {
  bookId,
  type EntryDocument,
  type EntryLine,
  type NewEntry,
  operationId,
  PLATFORM,
} from '../../../ledger/entries';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import { RECEIVABLE } from '../../../ledger/ledger-accounts';
import type { BalanceRow } from '../../../ledger/locks';
import { recordActed } from '../../../movements/acts';
import type { Routes } from '../../../routing';
import type { Change } from '../../../store/audit';
import { MOVEMENT_NAMES } from '../../../store/movements';
import type { WriteDeps } from '../../access';
import { SANDBOX_CURRENCIES } from '../../banks/bank-accounts';
import { assertServes } from '../../banks/connectors';
import { accountNow } from '../../merchants/clock';
import { finishApproval } from '../../operators/approvals/request';

/** Minor units, in each of `SANDBOX_CURRENCIES`. @see docs/decisions.md#sandbox */
const SANDBOX_FUNDS = { [MAIN_BALANCE]: 10_000_000, marketing: 1_000_000 };

export interface Funding {
  account_id: string;
  livemode: boolean;
  /** The first funding creates it. */
  balance_account: string;
  currency: string;
  /** Minor units. */
  amount: number;
  /** Whose bank has it, for which a line of its statement is awaited; needed on live. */
  connector?: string | undefined;
  /** Bank's name of the movement. */
  bank_reference?: string | undefined;
}

/** @throws ServiceError `invalid_usage`, `connector_unknown` */
export function assertBank(
  routes: Routes,
  {
    livemode,
    connector,
    bank_reference,
  }: Pick<Funding, 'livemode' | 'connector' | 'bank_reference'>,
): void {
  if (connector !== undefined) assertServes(routes, { connector, livemode });
  else if (bank_reference !== undefined) {
    throw new ServiceError('invalid_usage', 'A bank reference needs --connector.');
  }
}

export interface FundingOptions {
  /** A repeat with the same id credits nothing; generated when absent. */
  id?: string | undefined;
  note?: Note;
}

/** Operator and reason may be absent in the sandbox. */
export interface Note {
  operator?: string | undefined;
  reason?: string | undefined;
  /** Second operator. */
  approved_by?: string | undefined;
  approval_id?: string | undefined;
  /** Counts the credit in the same transaction. */
  count?: PostOptions['writeMore'];
}

/**
 * Credits money from outside the product. A repeat with the same id returns the unchanged balance.
 * @throws ServiceError `operation_id_used` when another funding has this id; `bank_reference_used`;
 * `approval_decided`
 */
export async function fundBalance(
  deps: WriteDeps,
  funding: Funding,
  { id = `fund_${randomUUID()}`, note = {} }: FundingOptions = {},
): Promise<PostedBalance> {
  const { currency, amount } = funding;
  const { approval_id, count: writeMore } = note;
  const storedNote = buildNote(note);
  const at = await accountNow(deps, funding);
  const entry = { ...buildEntry(funding, id, at), note: storedNote };
  const { balance_account } = funding;
  const { connector, bank_reference } = funding;
  const bank = { connector, bank_reference };
  const after = { balance_account, currency, amount, ...bank, ...storedNote, approval_id };
  const change = { act: 'balance.funded', after } as const;
  return await postOnce(deps, entry, change, { balance_account, approval_id, writeMore });
}

export function buildNote({ operator, reason, approved_by }: Note) {
  if (operator === undefined && reason === undefined) return undefined;
  const approval = approved_by === undefined ? {} : { approved_by };
  return { operator: operator ?? null, reason: reason ?? null, ...approval };
}

/**
 * Posts test funds once: their ids derive from the account.
 * @throws MongoServerError duplicate key when they are already posted
 */
export async function fundSandbox(deps: Omit<WriteDeps, 'audit'>, account_id: string) {
  // This may be the first write of the installation.
  await deps.stores.ledger.ensureIndexes();
  const at = deps.now();
  const entries = SANDBOX_CURRENCIES.flatMap((currency) =>
    Object.entries(SANDBOX_FUNDS).map(([balance_account, amount]) => {
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
  const { connector, bank_reference } = funding;
  const lines = ENTRY_LINES.funded(balance_account, amount, connector);
  return {
    ...{ kind: 'funded', resource_id, account_id, livemode, currency, bank_reference, lines },
    at: at.toISOString(),
  };
}

export type PostedBalance = BalanceRow & { operation_id: string };

export interface PostOptions {
  balance_account: string;
  /** Ends with the entry. */
  approval_id: string | undefined;
  /** Decides in the transaction which part of a debit the merchant owes. */
  splitDebit?: (session: ClientSession) => Promise<EntryLine[]>;
  /** Part of the same transaction. */
  writeMore?: (session: ClientSession) => Promise<void>;
}

/**
 * Posts an entry with its audit line, and collects what the merchant owes from what came; a repeat
 * posts nothing.
 * @returns the balance in the entry's book
 * @throws ServiceError `operation_id_used` when another entry has this id; `bank_reference_used`;
 * `approval_decided`;
 * InsufficientBalance
 */
export async function postOnce(
  deps: WriteDeps,
  entry: NewEntry,
  change: Pick<Change, 'act' | 'after'>,
  options: PostOptions,
  isAgain = false,
): Promise<PostedBalance> {
  const { mongo, stores, audit } = deps;
  const { balance_account, approval_id, writeMore } = options;
  const { ledger, movements } = stores;
  await Promise.all([ledger, movements].map((store) => store.ensureIndexes()));
  const { account_id, livemode, currency } = entry;
  const owner = { account_id, livemode, currency };
  const operation_id = operationId(entry);
  const credited = `balances.${balance_account}.available`;
  const isCredit = entry.lines.some(({ account, amount }) => account === credited && amount > 0);
  const empty = { balance_account, currency, available: 0, reserved: 0 };
  try {
    const row = await inTransaction(mongo, async (session) => {
      const lines = (await options.splitDebit?.(session)) ?? entry.lines;
      await ledger.post({ ...entry, lines }, session);
      if (entry.kind !== 'reversed') await recordActed(stores, { ...entry, lines }, session);
      await writeMore?.(session);
      if (isCredit) await ledger.collectDebt(owner, balance_account, entry.at, session);
      await finishApproval(stores, approval_id, 'posted', session);
      const audited = account_id === PLATFORM ? null : account_id;
      await audit({ ...change, account_id: audited, livemode, target: operation_id }, session);
      return await ledger.balance(entry, balance_account, session);
    });
    return { ...(row ?? empty), operation_id };
  } catch (error) {
    // Another act has just posted the bank reference, as one more try finds.
    if (isDuplicateKey(error, MOVEMENT_NAMES) && !isAgain) {
      return await postOnce(deps, entry, change, options, true);
    }
    const storedEntry = isDuplicateKey(error) ? await ledger.findEntry(operation_id) : null;
    if (storedEntry === null) throw error;
    if (!isSameEntry(storedEntry, entry)) {
      const { _id, kind, book, at } = storedEntry;
      const [noun, done] = kind === 'funded' ? ['funding', 'credited'] : ['operation', 'posted'];
      const text = formatLines(storedEntry.lines).join(', ');
      const message = `${_id} is the id of another ${noun}, of ${at}: ${text} in ${book}. Nothing was ${done}.`;
      throw new ServiceError('operation_id_used', message);
    }
    const rows = await ledger.balances(account_id, livemode);
    const isOwn = (row: BalanceRow) =>
      row.balance_account === balance_account && row.currency === currency;
    return { ...(rows.find(isOwn) ?? empty), operation_id };
  }
}

function isSameEntry(storedEntry: EntryDocument, entry: NewEntry): boolean {
  const hasDebt = ({ lines }: { lines: readonly { account: string }[] }) =>
    lines.some(({ account }) => account === RECEIVABLE);
  // A part of the debit may be owed: the other side has its amount.
  const isSplit = hasDebt(storedEntry) && !hasDebt(entry);
  const isShown = (line: string) => !isSplit || !/ -\d+$/.test(line);
  const [stored, wanted] = [storedEntry.lines, entry.lines].map((lines) =>
    formatLines(lines).filter(isShown).join(),
  );
  const isSameMovement = storedEntry.bank_reference === (entry.bank_reference ?? undefined);
  return storedEntry.book === bookId(entry) && stored === wanted && isSameMovement;
}

function formatLines(lines: EntryDocument['lines'] | NewEntry['lines']): string[] {
  return lines.map(({ account, amount }) => `${account} ${amount}`);
}
