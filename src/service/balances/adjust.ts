import { randomUUID } from 'node:crypto';
import { insufficientBalance } from '../../domain/account/balance';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import { formatMoney } from '../../domain/money';
import type { BookDocument, EntryDocument } from '../../ledger/documents';
import { type EntryLine, InsufficientBalance, type NewEntry } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import type { WriteDeps } from '../deps';
import { assertApproved, type PostedBalance, postOnce } from './fund';

export interface Correction {
  operator: string;
  reason: string;
  /** Second operator. */
  approved_by?: string | undefined;
}

export interface Adjustment {
  account_id: string;
  livemode: boolean;
  balance_account: string;
  /** ISO 4217 code, or the book currency of an asset. */
  currency: string;
  /** Minor units, or the smallest units of an asset as a bigint; a negative amount debits. */
  amount: number | bigint;
  /** Account of the opposite entry line: corrections by operators, or the merchant's debt. */
  against: 'adjustments' | 'receivable';
}

export interface AdjustDeps extends WriteDeps {
  /** Minor units above which a second operator approves on live. */
  approvalLimit: number;
}

/**
 * Corrects a balance, or collects the merchant's debt from it. A repeat with the same id posts
 * nothing.
 * @see docs/ledger.md#money-that-goes-wrong
 * @throws ServiceError `approval_required`, `insufficient_balance`, `nothing_owed`,
 *   `operation_id_used`
 */
export async function adjustBalance(
  deps: AdjustDeps,
  adjustment: Adjustment,
  correction: Correction,
  id: string = `adjust_${randomUUID()}`,
): Promise<PostedBalance> {
  const { account_id, livemode, balance_account, currency, amount, against } = adjustment;
  assertApproved(deps.approvalLimit, { livemode, currency, amount, ...pickOperators(correction) });
  const owner = { account_id, livemode, currency };
  const lines = ENTRY_LINES.adjusted(balance_account, amount, against);
  const entry = { kind: 'adjusted', resource_id: id, ...owner, legs: lines } as const;
  if (against === 'receivable') await assertOwed(deps, owner, entry.resource_id, Number(amount));
  return await post(deps, { ...entry, ...buildEntryDetails(deps, correction) }, balance_account);
}

/** Kinds of journal entries that no workflow decides about. */
const REVERSIBLE: readonly string[] = [
  'funded',
  'adjusted',
  'payment_clawed_back',
  'refund_sent_again',
  'payout_sent_again',
];

/**
 * Reverses a journal entry; a repeat posts nothing.
 * @throws ServiceError `operation_not_found`, `not_reversible`, `approval_required`,
 *   `insufficient_balance`
 */
export async function reverseOperation(deps: AdjustDeps, id: string, correction: Correction) {
  const { ledger } = deps.stores;
  const original = await ledger.findEntry(id);
  const book = original === null ? null : await ledger.book(original.book);
  if (original === null || book === null) {
    throw new ServiceError('operation_not_found', `There is no operation ${id}.`);
  }
  if (!REVERSIBLE.includes(original.kind)) {
    throw new ServiceError(
      'not_reversible',
      `${id} belongs to a payment, refund or payout: correct the balance instead.`,
    );
  }
  const { account_id, livemode, currency } = book;
  const lines = parseLines(original, currency);
  const { balance_account, amount } = findCredit(lines);
  assertApproved(deps.approvalLimit, { livemode, currency, amount, ...pickOperators(correction) });
  const entry = {
    ...({ kind: 'reversed', resource_id: id, account_id, livemode, currency } as const),
    legs: ENTRY_LINES.reversed(lines),
    ...buildEntryDetails(deps, correction),
  };
  return { ...(await post(deps, entry, balance_account)), amount: -amount };
}

function pickOperators({ operator, approved_by }: Correction) {
  return { operator, approved_by };
}

function buildEntryDetails({ now }: WriteDeps, { operator, reason, approved_by }: Correction) {
  const approval = approved_by === undefined ? {} : { approved_by };
  return { at: now().toISOString(), note: { operator, reason, ...approval } };
}

function parseLines({ legs: lines }: EntryDocument, currency: string): EntryLine[] {
  const isAsset = parseBookCurrency(currency) !== undefined;
  return lines.map(({ account, amount }) =>
    isAsset ? { account, amount: BigInt(String(amount)) } : { account, amount: Number(amount) },
  );
}

function findCredit(lines: readonly EntryLine[]): {
  balance_account: string;
  amount: number | bigint;
} {
  for (const { account, amount } of lines) {
    const name = /^balances\.(.+)\.available$/.exec(account)?.[1];
    if (name !== undefined) return { balance_account: name, amount };
  }
  return { balance_account: MAIN_BALANCE, amount: 0 };
}

/** @throws ServiceError `nothing_owed` when the merchant owes less */
async function assertOwed(
  { stores }: WriteDeps,
  { account_id, livemode, currency }: Pick<BookDocument, 'account_id' | 'livemode' | 'currency'>,
  id: string,
  amount: number,
): Promise<void> {
  const isRepeat = (await stores.ledger.findEntry(`adjusted:${id}`)) !== null;
  if (isRepeat) return;
  const rows = await stores.ledger.receivables(account_id, livemode);
  const owed = rows.find((row) => row.currency === currency)?.owed ?? 0;
  if (amount < 0 && -amount <= owed) return;
  const text = formatMoney(owed, currency);
  throw new ServiceError(
    'nothing_owed',
    `The merchant owes ${text}: an amount from -1 to -${owed} collects it.`,
  );
}

async function explainShortage({ stores }: WriteDeps, entry: NewEntry): Promise<ServiceError> {
  const { account_id, livemode, currency } = entry;
  const { balance_account, amount } = findCredit(entry.legs);
  const debit = { balance_account, currency, amount: -amount };
  const rows = await stores.ledger.balances(account_id, livemode);
  const { code, message } =
    amount < 0
      ? insufficientBalance(rows, debit)
      : ({ code: 'insufficient_balance', message: 'The merchant owes less by now.' } as const);
  return new ServiceError(code, `${message} Nothing was posted.`);
}

async function post(deps: AdjustDeps, entry: NewEntry, balance: string): Promise<PostedBalance> {
  const { kind, currency, legs: lines, note } = entry;
  const act = kind === 'reversed' ? 'balance.reversed' : 'balance.adjusted';
  const changes = lines.map((line) => `${line.account} ${line.amount}`);
  const after = { currency, legs: changes, ...note };
  try {
    return await postOnce(deps, entry, { act, after }, balance);
  } catch (error) {
    throw error instanceof InsufficientBalance ? await explainShortage(deps, entry) : error;
  }
}
