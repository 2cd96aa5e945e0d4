import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import { Contention, inTransaction } from '../../src/base/mongo';
import { MAIN_BALANCE } from '../../src/domain/money/money';
import { NO_LOCK } from '../../src/domain/no-lock';
import { BooksRefused } from '../../src/ledger/ledger-accounts';
import { type LockRequest, withLock } from '../../src/ledger/locks';
import type { Stores } from '../../src/store';

/** For a debit without a waiting caller. */
const DUE_MS = 10_000;

/** @throws ApplicationFailure `no_lock`, with the retry time */
export async function withDebitLock<T>(
  { mongo }: { mongo: MongoClient },
  lockRequest: LockRequest,
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  try {
    return await withLock(lockRequest, () => inTransaction(mongo, work));
  } catch (error) {
    if (!(error instanceof Contention)) throw error;
    const { message, retryMs: nextRetryDelay } = error;
    throw ApplicationFailure.create({ message, type: NO_LOCK, nextRetryDelay });
  }
}

/** Favors a debit that has waited longer. */
export function buildLockRequest(book: string, decidedAt: string): LockRequest {
  return { book, by: Date.parse(decidedAt) + DUE_MS };
}

/** Splits minor units into what the balance holds and what the merchant owes then. */
export async function splitDebit(
  ledger: Stores['ledger'],
  owner: Parameters<Stores['ledger']['balance']>[0],
  amount: number,
  session: ClientSession,
  balance_account: string = MAIN_BALANCE,
): Promise<{ held: number; owed: number }> {
  const balance = await ledger.balance(owner, balance_account, session);
  const available = balance?.available ?? 0;
  const held = available >= amount ? amount : Number(available);
  return { held, owed: amount - held };
}

const APPLY_SUFFIX = '00';

/**
 * Applies pending entries after one transition in 256; without lock or database, the next one does.
 */
export async function applyPendingOften(
  { mongo, stores, log }: { mongo: MongoClient; stores: Stores; log: Logger },
  resource_id: string,
  book: string,
): Promise<void> {
  if (!resource_id.endsWith(APPLY_SUFFIX)) return;
  const applyPending = (session: ClientSession) => stores.ledger.applyPending(book, session);
  try {
    const lockRequest = { book, by: Number.MAX_SAFE_INTEGER };
    await withLock(lockRequest, () => inTransaction(mongo, applyPending));
  } catch (err) {
    const { code } = { code: undefined, ...Object(err) };
    const level = err instanceof BooksRefused ? 'error' : 'debug';
    log[level]({ err, code, book }, 'pending entries not applied');
  }
}
