import { Contention } from '../base/mongo';

export interface LockRequest {
  book: string;
  /** Deadline, ms since the epoch: the earliest goes first. */
  by: number;
}

/** Bounds of one process: waiting debits hold connections that payments need, too. */
export interface QueueBounds {
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
