import { randomUUID } from 'node:crypto';
import { MAIN_BALANCE } from '../domain/balance-account';
import { coinOfBook } from '../domain/crypto';
import { formatMoney } from '../domain/money';
import type { BalanceRow } from '../ledger/book';
import type { BookDocument, PostingDocument } from '../ledger/documents';
import { LEGS } from '../ledger/legs';
import {
  type AnyLeg,
  bookId,
  InsufficientBalance,
  type NewPosting,
  operationId,
} from '../ledger/postings';
import { inTransaction, isDuplicateKey } from '../mongo';
import type { Audit } from '../store/audit';
import { assertApproved } from './approval';
import { CliFailure } from './failure';
import { type FundDeps, type Funded, isSame, usedFor } from './fund';

/** Operators of a correction, and why it is made. */
export interface Correction {
  operator: string;
  reason: string;
  /** Second operator. */
  approvedBy?: string | undefined;
}

export interface Adjustment {
  account_id: string;
  livemode: boolean;
  balance_account: string;
  /** ISO 4217, or the book of a coin. */
  currency: string;
  /** Minor units, or the smallest of a coin as a bigint; below 0 debits. */
  amount: number | bigint;
  /** Account on the other side: what operators correct, or what the merchant owes. */
  against: 'adjustments' | 'receivable';
}

export interface AdjustDeps extends FundDeps {
  audit: Audit;
  /** Minor units above which a second operator approves on live. */
  approvalLimit: number;
}

/**
 * Corrects a balance, or collects from it what the merchant owes. A repeat under the same id posts
 * nothing. @see docs/ledger.md#money-that-goes-wrong
 * @throws CliFailure `approval_required`, `insufficient_balance`, `nothing_owed`,
 *   `operation_id_used`
 */
export async function adjustBalance(
  deps: AdjustDeps,
  adjustment: Adjustment,
  correction: Correction,
  id: string = `adjust_${randomUUID()}`,
): Promise<Funded> {
  const { account_id, livemode, balance_account, currency, amount, against } = adjustment;
  assertApproved(deps.approvalLimit, { livemode, currency, amount, ...by(correction) });
  const owner = { account_id, livemode, currency };
  const legs = LEGS.adjusted(balance_account, amount, against);
  const posting = { kind: 'adjusted', resource_id: id, ...owner, legs } as const;
  if (against === 'receivable') await assertOwed(deps, owner, posting.resource_id, Number(amount));
  return await post(deps, { ...posting, ...written(deps, correction) }, balance_account);
}

/** Kinds of posting that an operator may undo; what a resource has done is told by its workflow. */
const REVERSIBLE: readonly string[] = ['funded', 'adjusted', 'payment_clawed_back'];

/**
 * Undoes a posting by its opposite, once: a repeat posts nothing.
 * @throws CliFailure `operation_not_found`, `not_reversible`, `approval_required`,
 *   `insufficient_balance`
 */
export async function reverseOperation(
  deps: AdjustDeps,
  id: string,
  correction: Correction,
): Promise<Funded & { amount: number | bigint }> {
  const { ledger } = deps.stores;
  const found = await ledger.posting(id);
  const book = found === null ? null : await ledger.book(found.book);
  if (found === null || book === null) {
    throw new CliFailure('operation_not_found', `There is no operation ${id}.`);
  }
  if (!REVERSIBLE.includes(found.kind)) {
    throw new CliFailure(
      'not_reversible',
      `${id} says what became of a payment, refund or payout: correct the balance instead.`,
    );
  }
  const { account_id, livemode, currency } = book;
  const legs = legsOf(found, currency);
  const { balance_account, amount } = creditOf(legs);
  assertApproved(deps.approvalLimit, { livemode, currency, amount, ...by(correction) });
  const posting = {
    ...({ kind: 'reversed', resource_id: id, account_id, livemode, currency } as const),
    legs: LEGS.reversed(legs),
    ...written(deps, correction),
  };
  return { ...(await post(deps, posting, balance_account)), amount: -amount };
}

function by({ operator, approvedBy }: Correction) {
  return { operator, approvedBy };
}

function written({ now }: FundDeps, { operator, reason, approvedBy }: Correction) {
  const approved = approvedBy === undefined ? {} : { approved_by: approvedBy };
  return { at: now().toISOString(), note: { operator, reason, ...approved } };
}

/** Legs of a posting as they were written. */
function legsOf({ legs }: PostingDocument, currency: string): AnyLeg[] {
  const isCoin = coinOfBook(currency) !== undefined;
  return legs.map(({ account, amount }) =>
    isCoin ? { account, amount: BigInt(String(amount)) } : { account, amount: Number(amount) },
  );
}

/** The balance that a posting credits or debits, and by how much. */
function creditOf(legs: readonly AnyLeg[]): { balance_account: string; amount: number | bigint } {
  for (const { account, amount } of legs) {
    const name = /^balances\.(.+)\.available$/.exec(account)?.[1];
    if (name !== undefined) return { balance_account: name, amount };
  }
  return { balance_account: MAIN_BALANCE, amount: 0 };
}

/** @throws CliFailure `nothing_owed` when the merchant owes less */
async function assertOwed(
  { stores }: FundDeps,
  { account_id, livemode, currency }: Pick<BookDocument, 'account_id' | 'livemode' | 'currency'>,
  id: string,
  amount: number,
): Promise<void> {
  const isRepeat = (await stores.ledger.posting(`adjusted:${id}`)) !== null;
  if (isRepeat) return;
  const rows = await stores.ledger.receivables(account_id, livemode);
  const owed = rows.find((row) => row.currency === currency)?.owed ?? 0;
  if (amount < 0 && -amount <= owed) return;
  const text = formatMoney(owed, currency);
  throw new CliFailure(
    'nothing_owed',
    `The merchant owes ${text}: an amount from -1 to -${owed} collects it.`,
  );
}

async function post(deps: AdjustDeps, posting: NewPosting, balance: string): Promise<Funded> {
  const { ledger } = deps.stores;
  await ledger.ensureIndexes();
  const operation_id = operationId(posting);
  try {
    await inTransaction(deps.mongo, async (session) => {
      await ledger.post(posting, session);
      const { kind, account_id, livemode, currency, legs, note } = posting;
      const act = kind === 'reversed' ? 'balance.reversed' : 'balance.adjusted';
      const moved = legs.map((leg) => `${leg.account} ${leg.amount}`);
      const after = { currency, legs: moved, ...note };
      await deps.audit({ act, account_id, livemode, target: operation_id, after }, session);
    });
  } catch (error) {
    if (error instanceof InsufficientBalance) {
      const message = `${balance} does not hold this amount. Nothing was posted.`;
      throw new CliFailure('insufficient_balance', message);
    }
    const posted = isDuplicateKey(error) ? await ledger.posting(operation_id) : null;
    if (posted === null) throw error;
    if (posted.book !== bookId(posting) || !isSame(posted, posting)) throw usedFor(posted);
  }
  const rows = await ledger.balances(posting.account_id, posting.livemode);
  const isOf = (row: BalanceRow) =>
    row.balance_account === balance && row.currency === posting.currency;
  const empty = { balance_account: balance, currency: posting.currency, available: 0, reserved: 0 };
  return { ...(rows.find(isOf) ?? empty), operation_id };
}
