import { Contention } from '../mongo';

/** Place in the line for a book. */
export interface Turn {
  /** Name of the line; each goes on by itself. */
  book: string;
  /** Time by which it should be done, in ms since the epoch: the earliest goes first. */
  by: number;
}

/** Bounds of the lines of one process, whose waiting debits hold slots that payments need, too. */
export interface LineBounds {
  /** Most that wait for one book. */
  perBook: number;
  /** Most that wait in all. */
  inAll: number;
  /** Longest wait, in ms; shorter than the attempt that waits. */
  patienceMs: number;
}

const BOUNDS: LineBounds = { perBook: 8, inAll: 20, patienceMs: 1_500 };
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 10_000;
/** Length of a turn before the first was measured. */
const PACE_MS = 30;

interface Waiting {
  by: number;
  begin: () => void;
  leave: () => void;
}

interface Line {
  /** By the time at which they should be done. */
  waiting: Waiting[];
  /** Times at which those who were sent away come again, the earliest first. */
  away: number[];
  /** Usual length of a turn, in ms. */
  pace: number;
  busy: boolean;
}

/**
 * Runs work with the same book one after the other: at once, MongoDB would abort all but one of the
 * transactions and each would start again. Few may wait. Others are sent away and told when to come
 * again, each a turn later than the one before; whoever comes back is older, and goes first.
 * @throws Contention when it found no turn; nothing was begun then
 */
export const inTurn = createTurns();

export function createTurns(bounds: LineBounds = BOUNDS, now: () => number = Date.now) {
  const lines = new Map<string, Line>();
  let waitingInAll = 0;

  const lineOf = (book: string): Line => {
    const line = lines.get(book) ?? { waiting: [], away: [], pace: PACE_MS, busy: false };
    lines.set(book, line);
    return line;
  };

  const leave = (line: Line, one: Waiting) => {
    line.waiting.splice(line.waiting.indexOf(one), 1);
    waitingInAll -= 1;
  };

  const wait = (line: Line, by: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        leave(line, one);
        one.leave();
      }, bounds.patienceMs);
      const one: Waiting = {
        by,
        begin: () => {
          clearTimeout(timer);
          resolve();
        },
        leave: () => {
          clearTimeout(timer);
          reject(sendAway(line, now()));
        },
      };
      const later = line.waiting.findIndex((other) => other.by > by);
      line.waiting.splice(later === -1 ? line.waiting.length : later, 0, one);
      waitingInAll += 1;
    });

  const enter = async (line: Line, by: number): Promise<void> => {
    if (!line.busy) {
      line.busy = true;
      return;
    }
    if (line.waiting.length >= bounds.perBook || waitingInAll >= bounds.inAll) {
      const last = line.waiting.at(-1);
      if (last === undefined || last.by <= by) throw sendAway(line, now());
      leave(line, last);
      last.leave();
    }
    await wait(line, by);
  };

  const pass = (book: string, line: Line) => {
    const [next] = line.waiting;
    if (next !== undefined) {
      leave(line, next);
      next.begin();
      return;
    }
    line.busy = false;
    if (away(line, now()).length === 0) lines.delete(book);
  };

  return async <T>({ book, by }: Turn, run: () => Promise<T>): Promise<T> => {
    const line = lineOf(book);
    await enter(line, by);
    const began = now();
    try {
      return await run();
    } finally {
      line.pace += (now() - began - line.pace) / 8;
      pass(book, line);
    }
  };
}

function sendAway(line: Line, now: number): Contention {
  const places = away(line, now).length + 1;
  const retryMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN + Math.round(places * line.pace));
  line.away = [...line.away, now + retryMs].sort((a, b) => a - b);
  return new Contention('Too many debits wait for this book.', retryMs);
}

/** Those who were sent away and have not come again yet. */
function away(line: Line, now: number): number[] {
  line.away = line.away.filter((at) => at > now);
  return line.away;
}
