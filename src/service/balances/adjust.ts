import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import { formatMoney } from '../../domain/money';
import { type Against, readConnector } from '../../ledger/against';
import type { BookDocument, EntryDocument } from '../../ledger/documents';
import { type EntryLine, type NewEntry, operationId } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { explainShortage, InsufficientBalance } from '../../ledger/insufficient-balance';
import type { Routes } from '../../routing';
import { accountNow } from '../clock';
import { assertServes } from '../connectors';
import type { Owner, WriteDeps } from '../deps';
import { type PostedBalance, type PostOptions, postOnce } from './fund';

export { parseAgainst } from '../../ledger/against';

export interface Correction {
  operator: string;
  reason: string;
  /** Second operator. */
  approved_by?: string | undefined;
  approval_id?: string | undefined;
}

interface BalanceAmount {
  account_id: string;
  balance_account: string;
  /** ISO 4217 code, or the book currency of an asset. */
  currency: string;
  /** Minor units, or the smallest units of an asset as a bigint; a negative amount debits. */
  amount: number | bigint;
}

export interface Adjustment extends BalanceAmount {
  livemode: boolean;
  /** Account of the opposite entry line. */
  against: Against;
  /** Name that the bank gave the movement, with `clearing:CONNECTOR`. */
  bank_reference?: string | undefined;
}

/**
 * Asserts that the opposite side of a correction exists.
 * @throws ServiceError `invalid_usage`, `connector_unknown`
 */
export function assertOpposite(
  routes: Routes,
  { livemode, against, bank_reference }: Omit<Adjustment, keyof BalanceAmount>,
): void {
  const connector = readConnector(against);
  if (connector !== undefined) assertServes(routes, { connector, livemode });
  else if (bank_reference !== undefined) {
    const message = 'A bank reference needs --against clearing:CONNECTOR.';
    throw new ServiceError('invalid_usage', message);
  }
}

/**
 * Corrects a balance, or collects the merchant's debt from it. A repeat with the same id posts
 * nothing.
 * @see docs/ledger.md#money-that-goes-wrong
 * @throws ServiceError `insufficient_balance`, `nothing_owed`, `operation_id_used`,
 *   `approval_decided`
 */
export async function adjustBalance(
  deps: WriteDeps,
  adjustment: Adjustment,
  correction: Correction,
  id: string = `adjust_${randomUUID()}`,
): Promise<PostedBalance> {
  const { account_id, livemode, balance_account, currency, amount, against } = adjustment;
  const owner = { account_id, livemode, currency };
  const lines = ENTRY_LINES.adjusted(balance_account, amount, against);
  const { bank_reference } = adjustment;
  const entry = {
    kind: 'adjusted',
    resource_id: id,
    ...owner,
    bank_reference,
    legs: lines,
  } as const;
  if (against === 'receivable') await assertOwed(deps, owner, entry.resource_id, Number(amount));
  const { approval_id } = correction;
  const details = await buildEntryDetails(deps, owner, correction);
  return await post(deps, { ...entry, ...details }, { balance_account, approval_id });
}

/** Kinds of journal entries that no workflow decides about. */
const REVERSIBLE: readonly string[] = [
  'funded',
  'adjusted',
  'payment_clawed_back',
  'payment_dispute_opened',
  'refund_sent_again',
  'payout_sent_again',
  'payout_return_held',
];

/** Kinds that say what a bank moved: where it did not, no statement has them. */
const CORRECTED_BY_REVERSAL: readonly string[] = ['adjusted', 'payout_return_held'];

/**
 * Finds the entry to reverse, and whose it is.
 * @throws ServiceError `operation_not_found`, `not_reversible`
 */
export async function prepareReversal(
  { stores: { ledger } }: Pick<WriteDeps, 'stores'>,
  id: string,
) {
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
  return { original, account_id, livemode, currency, lines };
}

/**
 * Reverses a journal entry; a repeat posts nothing.
 * @throws ServiceError `operation_not_found`, `not_reversible`, `insufficient_balance`,
 *   `approval_decided`
 */
export async function reverseOperation(deps: WriteDeps, id: string, correction: Correction) {
  const { lines, original, ...owner } = await prepareReversal(deps, id);
  const legs = ENTRY_LINES.reversed(lines);
  const { balance_account, amount } = findCredit(legs);
  const { approval_id } = correction;
  const entry = {
    ...({ kind: 'reversed', resource_id: id, ...owner, legs } as const),
    // A correction that no bank has made is on no statement, nor is its reversal.
    offsets: CORRECTED_BY_REVERSAL.includes(original.kind) ? id : undefined,
    ...(await buildEntryDetails(deps, owner, correction)),
  };
  const writeMore = async (session: ClientSession) => {
    await markDisputeWon(deps, original, entry.at, session);
    await markReturnReversed(deps, original, entry.at, session);
  };
  const balance = await post(deps, entry, { balance_account, approval_id, writeMore });
  return { ...balance, amount };
}

/**
 * Closes the dispute whose money an entry took, so that it comes back once.
 * @throws ServiceError `not_reversible` when it was won
 */
async function markDisputeWon(
  { stores: { payments } }: WriteDeps,
  { _id, kind, resource_id }: EntryDocument,
  at: string,
  session: ClientSession,
): Promise<void> {
  if (!kind.startsWith('payment_')) return;
  const { disputes = [] } = (await payments.get(resource_id, session)) ?? {};
  const dispute = disputes.find(
    (each) => operationId({ ...each, kind: `payment_${each.kind}`, resource_id }) === _id,
  );
  if (dispute !== undefined) {
    const { id, amount, fee } = dispute;
    const closing = { state: 'won', won: amount, fee_returned: fee, is_reversed: true } as const;
    const change = { ...closing, closed_at: at, closed_by: `reversed:${_id}` };
    const from = { id, states: ['opened', 'lost'] as const };
    if (await payments.closeDispute(resource_id, from, { at, change, act: {} }, session)) return;
  }
  throw new ServiceError('not_reversible', `The dispute of ${_id} is won already.`);
}

/** Notes on a payout that its money did not come back. @throws ServiceError `not_reversible` */
async function markReturnReversed(
  { stores: { payouts } }: WriteDeps,
  { _id, kind, resource_id }: EntryDocument,
  at: string,
  session: ClientSession,
): Promise<void> {
  if (kind !== 'payout_return_held') return;
  const { returns_held = [] } = (await payouts.get(resource_id, session)) ?? {};
  const held = returns_held.find(({ id }) => operationId({ kind, resource_id, step: id }) === _id);
  if (held !== undefined && (await payouts.reverseReturnHeld(resource_id, held, at, session))) {
    return;
  }
  throw new ServiceError('not_reversible', `The money of ${_id} has left suspense.`);
}

async function buildEntryDetails(
  deps: WriteDeps,
  owner: Owner,
  { operator, reason, approved_by }: Correction,
) {
  const approval = approved_by === undefined ? {} : { approved_by };
  const at = (await accountNow(deps, owner)).toISOString();
  return { at, note: { operator, reason, ...approval } };
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

async function refuseShortage({ stores }: WriteDeps, entry: NewEntry): Promise<ServiceError> {
  const { currency } = entry;
  const { balance_account, amount } = findCredit(entry.legs);
  const debit = { balance_account, currency, amount: -amount };
  const { code, message } =
    amount < 0
      ? await explainShortage(stores.ledger, entry, debit)
      : ({ code: 'insufficient_balance', message: explainOpposite(entry) } as const);
  return new ServiceError(code, `${message} Nothing was posted.`);
}

function explainOpposite({ legs: lines }: NewEntry): string {
  const isHeld = lines.some(({ account }) => account.startsWith('suspense.'));
  return isHeld ? 'Less is in suspense.' : 'The merchant owes less by now.';
}

async function post(
  deps: WriteDeps,
  entry: NewEntry,
  posting: PostOptions,
): Promise<PostedBalance> {
  const { kind, currency, legs: lines, note } = entry;
  const act = kind === 'reversed' ? 'balance.reversed' : 'balance.adjusted';
  const changes = lines.map((line) => `${line.account} ${line.amount}`);
  const { approval_id } = posting;
  const after = { currency, legs: changes, ...note, approval_id };
  try {
    return await postOnce(deps, entry, { act, after }, posting);
  } catch (error) {
    throw error instanceof InsufficientBalance ? await refuseShortage(deps, entry) : error;
  }
}
