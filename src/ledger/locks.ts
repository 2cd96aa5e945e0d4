import { Contention } from '../base/mongo';
import type { RuleViolation } from '../domain/errors';
import {
  type AvailableBalance,
  type Debit,
  insufficientBalance,
} from '../domain/money/insufficient-balance';
import type { BookDocument, EntryLine, NewEntry } from './entries';
import {
  mustNotBeNegative,
  mustNotBePositive,
  RECEIVABLE,
  readAvailable,
  readClearing,
  toBigInt,
  toStoredInteger,
} from './ledger-accounts';

export interface LockRequest {
  book: string;
  /** Deadline, ms since the epoch: the earliest goes first. */
  by: number;
}

/** Bounds of one process: waiting debits hold connections that payments need, too. */
interface QueueBounds {
  perBook: number;
  inAll: number;
  /** Longest wait, ms; shorter than the attempt that waits. */
  patienceMs: number;
}

const BOUNDS: QueueBounds = { perBook: 8, inAll: 20, patienceMs: 1_500 };
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 10_000;
/** Estimate before the first measurement. */
const PACE_MS = 30;

interface Waiter {
  by: number;
  begin: () => void;
  leave: () => void;
}

interface LockQueue {
  waiters: Waiter[];
  /** Earliest first. */
  retryTimes: number[];
  /** Usual hold of the lock, ms. */
  pace: number;
  busy: boolean;
}

/**
 * Runs work on one book at a time: MongoDB would abort all but one of concurrent transactions.
 * Refused callers get a time to retry, each later than the one before; a retry is older, so it goes
 * first.
 * @throws Contention when the caller may not wait; nothing has begun
 */
export const withLock = createLocks();

export function createLocks(bounds: QueueBounds = BOUNDS, now: () => number = Date.now) {
  const queues = new Map<string, LockQueue>();
  let waitingInAll = 0;

  const getQueue = (book: string): LockQueue => {
    const queue = queues.get(book) ?? { waiters: [], retryTimes: [], pace: PACE_MS, busy: false };
    queues.set(book, queue);
    return queue;
  };

  const wait = (queue: LockQueue, by: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const remove = () => {
        clearTimeout(timer);
        queue.waiters.splice(queue.waiters.indexOf(waiter), 1);
        waitingInAll -= 1;
      };
      const waiter: Waiter = {
        by,
        begin: () => {
          remove();
          resolve();
        },
        leave: () => {
          remove();
          reject(buildRejection(queue, now()));
        },
      };
      const timer = setTimeout(waiter.leave, bounds.patienceMs);
      const later = queue.waiters.findIndex((other) => other.by > by);
      queue.waiters.splice(later === -1 ? queue.waiters.length : later, 0, waiter);
      waitingInAll += 1;
    });

  const acquire = async (queue: LockQueue, by: number): Promise<void> => {
    if (!queue.busy) {
      queue.busy = true;
      return;
    }
    if (queue.waiters.length >= bounds.perBook || waitingInAll >= bounds.inAll) {
      const last = queue.waiters.at(-1);
      if (last === undefined || last.by <= by) throw buildRejection(queue, now());
      last.leave();
    }
    await wait(queue, by);
  };

  const release = (book: string, queue: LockQueue) => {
    const [next] = queue.waiters;
    if (next !== undefined) return next.begin();
    queue.busy = false;
    if (listRetries(queue, now()).length === 0) queues.delete(book);
  };

  return async <T>({ book, by }: LockRequest, run: () => Promise<T>): Promise<T> => {
    const queue = getQueue(book);
    await acquire(queue, by);
    const began = now();
    try {
      return await run();
    } finally {
      queue.pace += (now() - began - queue.pace) / 8;
      release(book, queue);
    }
  };
}

function buildRejection(queue: LockQueue, now: number): Contention {
  const position = listRetries(queue, now).length + 1;
  const retryMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN + Math.round(position * queue.pace));
  queue.retryTimes = [...queue.retryTimes, now + retryMs].sort((a, b) => a - b);
  return new Contention('Too many debits wait for this book.', retryMs);
}

function listRetries(queue: LockQueue, now: number): number[] {
  queue.retryTimes = queue.retryTimes.filter((at) => at > now);
  return queue.retryTimes;
}

/** Error of an entry by which a balance would pass its limit. The transaction aborts. */
export class InsufficientBalance extends Error {
  override readonly name = 'InsufficientBalance';
}

/** Explains to the merchant why a debit was refused, by the balances as they are now. */
export async function explainShortage(
  ledger: { balances(account_id: string, livemode: boolean): Promise<AvailableBalance[]> },
  { account_id, livemode }: Pick<NewEntry, 'account_id' | 'livemode'>,
  debit: Debit,
): Promise<RuleViolation> {
  return insufficientBalance(await ledger.balances(account_id, livemode), debit);
}

export type Applied = Pick<NewEntry, 'lines' | 'owed_max'>;

/** Minor units. */
export function readOwed(balances: ReadonlyMap<string, unknown>): number {
  return -Number(balances.get(RECEIVABLE) ?? 0);
}

/** A book without debts has no such balance. */
export function buildDebtBound(owed_max: number | undefined): [string, object][] {
  return owed_max === undefined ? [] : [[RECEIVABLE, { $not: { $lt: -owed_max } }]];
}

export function buildBounds(lines: readonly EntryLine[], currency: string) {
  return lines.flatMap(({ account, amount }): [string, object][] => {
    const bound = toStoredInteger(-amount, currency);
    if (amount < 0 && mustNotBeNegative(account)) return [[account, { $gte: bound }]];
    if (amount > 0 && mustNotBePositive(account)) return [[account, { $lte: bound }]];
    return [];
  });
}

/** Counts pending entries, too. */
export function isCovered(
  lines: readonly EntryLine[],
  balances: ReadonlyMap<string, unknown>,
): boolean {
  return lines.every(({ account, amount }) => {
    const after = (toBigInt(balances.get(account)) ?? 0n) + BigInt(amount);
    if (after < 0n) return !mustNotBeNegative(account);
    return after === 0n || !mustNotBePositive(account);
  });
}

/** Minor units, or an asset's smallest; a bigint where a number would not be exact. */
export interface BalanceRow {
  balance_account: string;
  currency: string;
  available: number | bigint;
  reserved: number | bigint;
  /** Settled, and not available yet; absent: nothing is. */
  pending?: number;
}

export interface Receivable {
  currency: string;
  /** Minor units. */
  owed: number;
}

export function toBalanceRows(
  currency: string,
  balances: ReadonlyMap<string, unknown>,
  now: Date,
): BalanceRow[] {
  const names = [...balances.keys()].flatMap(
    (path) => /^(?:balances|due)\.([^.]+)\./.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].map((balance_account) => {
    const { come, pending } = readDue(balances, balance_account, now);
    const at = (part: string, more = 0) => {
      const stored = toBigInt(balances.get(`balances.${balance_account}.${part}`)) ?? 0n;
      const amount = stored + BigInt(more);
      return Number.isSafeInteger(Number(amount)) ? Number(amount) : amount;
    };
    const more = [...come.values()].reduce((sum, amount) => sum + amount, 0);
    const row = { available: at('available', more), reserved: at('reserved') };
    return { balance_account, currency, ...row, ...(pending === 0 ? {} : { pending }) };
  });
}

/** Reads what can be used by now, by its day, and the sum of what cannot; minor units. */
export function readDue(balances: ReadonlyMap<string, unknown>, balance: string, now: Date) {
  const today = now.toISOString().slice(0, 'YYYY-MM-DD'.length);
  const come = new Map<string, number>();
  let pending = 0;
  for (const [account, stored] of balances) {
    const { name, day = '' } = readAvailable(account) ?? {};
    const amount = Number(stored ?? 0);
    if (name !== balance || day === '' || amount === 0) continue;
    if (day <= today) come.set(day, amount);
    else pending += amount;
  }
  return { come, pending };
}

/** Lists connectors that have moved money of a book. */
export function listConnectors(balances: ReadonlyMap<string, unknown>): string[] {
  return [...balances.keys()].flatMap((account) => readClearing(account) ?? []);
}

export function toReceivables(
  books: readonly Pick<BookDocument, 'currency' | 'receivable'>[],
): Receivable[] {
  const rows = books.flatMap(({ currency, receivable }) => {
    const owed = -Number(receivable?.['merchant'] ?? 0);
    return owed === 0 ? [] : [{ currency, owed }];
  });
  return rows.sort((a, b) => (a.currency < b.currency ? -1 : 1));
}

export function byNameAndCurrency(a: BalanceRow, b: BalanceRow): number {
  const [left, right] = [a, b].map((row) => `${row.balance_account} ${row.currency}`);
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
