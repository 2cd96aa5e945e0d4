import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../src/base/log';
import { Contention, inTransaction } from '../src/base/mongo';
import { MAIN_BALANCE } from '../src/domain/account/balance-account';
import { bookOwner } from '../src/ledger/entries';
import { withLock } from '../src/ledger/locks';
import { accountNow } from '../src/service/merchants/clock';
import type { Stores } from '../src/store';
import { startRounds } from './rounds';

interface CollectDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'accounts' | 'ledger'>;
  livemode: boolean;
  log: Logger;
}

const ROUND_MS = 1_000;
const BOOKS_MAX = 200;

/**
 * Collects debts by the clock, so that a settled payment reads no book.
 * @returns function that ends it
 * @see docs/ledger.md#money-that-goes-wrong
 */
export function startCollecting(deps: CollectDeps): () => Promise<void> {
  let after = '';
  const round = async (signal: AbortSignal) => {
    after = await collectDebts(deps, after, signal);
  };
  return startRounds(ROUND_MS, round, (err) => deps.log.warn({ err }, 'debts not collected'));
}

/**
 * Collects some books' debts; two at once collect none twice.
 * @returns the book after which the next round continues
 */
export async function collectDebts(
  deps: CollectDeps,
  after: string,
  signal?: AbortSignal,
): Promise<string> {
  const { books, last = '' } = await deps.stores.ledger.listCollectable(
    deps.livemode,
    after,
    BOOKS_MAX,
  );
  for (const book of books) {
    // A round may take minutes, longer than a worker that stops is waited for.
    if (signal?.aborted) break;
    await collectDebt(deps, book);
  }
  return last;
}

async function collectDebt({ mongo, stores, log }: CollectDeps, book: string): Promise<void> {
  const owner = bookOwner(book);
  try {
    const at = (await accountNow({ stores, now: () => new Date() }, owner)).toISOString();
    const collect = (session: ClientSession) =>
      stores.ledger.collectDebt(owner, MAIN_BALANCE, at, session);
    // Behind every debit that a caller waits for.
    const lockRequest = { book, by: Number.MAX_SAFE_INTEGER };
    const amount = await withLock(lockRequest, () => inTransaction(mongo, collect));
    if (amount > 0) log.info({ book, amount }, 'debt collected');
  } catch (err) {
    // One book that fails must not keep the round from the others.
    const level = err instanceof Contention ? 'debug' : 'warn';
    log[level]({ err, book }, 'debt not collected');
  }
}
