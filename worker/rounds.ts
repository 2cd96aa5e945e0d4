import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../src/base/log';
import { Contention, inTransaction } from '../src/base/mongo';
import { MAIN_BALANCE } from '../src/domain/money/money';
import { bookOwner } from '../src/ledger/entries';
import { withLock } from '../src/ledger/locks';
import { accountNow } from '../src/service/merchants/clock';
import { sendNextMail } from '../src/service/merchants/mail/transport';
import type { Stores } from '../src/store';
import { ensureSchedule, SCHEDULE_NAMES } from '../src/temporal/schedules';

const ROUND_MS = 1_000;

/**
 * Goes on after a failed round.
 * @returns function that ends it, and waits for the round in progress
 */
function startRounds(
  pauseMs: number,
  round: (signal: AbortSignal) => Promise<void>,
  onError: (err: unknown) => void,
): () => Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const run = async () => {
    while (!signal.aborted) {
      await round(signal).catch(onError);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  return async () => {
    stop.abort();
    await running;
  };
}

/** @returns function that ends it */
export function startSendingMail(deps: Parameters<typeof sendNextMail>[0]): () => Promise<void> {
  const round = async (signal: AbortSignal) => {
    while (!signal.aborted && (await sendNextMail(deps)));
  };
  return startRounds(ROUND_MS, round, (err) => deps.log.warn({ err }, 'mail not read'));
}

interface CollectDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'accounts' | 'ledger'>;
  livemode: boolean;
  log: Logger;
}

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
    if (amount > 0) log.info({ book }, 'debt collected');
  } catch (err) {
    // One book that fails must not keep the round from the others.
    const level = err instanceof Contention ? 'debug' : 'warn';
    log[level]({ err, book }, 'debt not collected');
  }
}

const SCHEDULE_PAUSE_MS = 10_000;

interface ScheduleDeps {
  temporal: Client;
  lifecycleQueue: string;
  log: Record<'info' | 'warn', (fields: object, line: string) => void>;
}

/**
 * Ensures each schedule, and tries those that failed again until none is left.
 * @returns function that ends it, and waits for the call in progress
 */
export function startScheduling(
  { temporal, lifecycleQueue, log }: ScheduleDeps,
  pauseMs = SCHEDULE_PAUSE_MS,
): () => Promise<void> {
  const left = new Set(SCHEDULE_NAMES);
  const warned = new Set<string>();
  const stop = new AbortController();
  const { signal } = stop;
  const ensureAll = async (): Promise<void> => {
    while (!signal.aborted) {
      for (const name of left) {
        if (signal.aborted) return;
        try {
          const status = await ensureSchedule(temporal, name, lifecycleQueue);
          log.info({ status }, `${name} scheduled`);
          left.delete(name);
        } catch (err) {
          // Once each: a Temporal that denies access to schedules would fill the log.
          if (!warned.has(name)) log.warn({ err }, `${name} not scheduled`);
          warned.add(name);
        }
      }
      if (left.size === 0) return;
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = ensureAll();
  return async () => {
    stop.abort();
    await running;
  };
}
