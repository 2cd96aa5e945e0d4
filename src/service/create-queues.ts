/** An account that called counts as a neighbor for this time. */
const NEIGHBOR_MS = 10_000;

export interface QueueLimits {
  /** Active calls of an account. */
  alone: number;
  nextToOthers: number;
  /** Calls that begin together after a pause, with neighbors. */
  burst: number;
  /** Per account. */
  waitingMax: number;
  waitMsMax: number;
  /** Estimate until a call has ended. */
  expectedMs: number;
}

interface Queue {
  active: number;
  /** Each begins a call, in order. */
  waiting: (() => void)[];
  averageMs: number;
  nextAt: number;
  timer: NodeJS.Timeout | undefined;
}

interface Caller<Kind extends string> {
  lastAt: number;
  queues: Map<Kind, Queue>;
}

/** @param counts whether the call took as long as calls do */
export type Leave = (counts: boolean) => void;

/**
 * Makes an account's calls wait while too many of them run. The limit is lower while other accounts
 * call: a burst of one merchant would otherwise take the processors from all.
 * @see docs/operations.md#overload
 */
export function createQueues<Kind extends string>(
  limits: Readonly<Record<Kind, QueueLimits>>,
  now = () => performance.now(),
) {
  /** Ordered by the last call, the earliest first. */
  const callers = new Map<string, Caller<Kind>>();
  let latest: Caller<Kind> | undefined;
  let latestOther: Caller<Kind> | undefined;

  const note = (account_id: string): Caller<Kind> => {
    const caller = callers.get(account_id) ?? { lastAt: 0, queues: new Map() };
    caller.lastAt = now();
    callers.delete(account_id);
    callers.set(account_id, caller);
    for (const [name, { lastAt, queues }] of callers) {
      if (now() - lastAt < NEIGHBOR_MS) break;
      if ([...queues.values()].every(isEmpty)) callers.delete(name);
    }
    if (latest !== caller) [latest, latestOther] = [caller, latest];
    return caller;
  };
  const isAlone = (caller: Caller<Kind>): boolean => {
    const other = latest === caller ? latestOther : latest;
    return other === undefined || now() - other.lastAt >= NEIGHBOR_MS;
  };
  const beginWhatMay = (caller: Caller<Kind>, queue: Queue, kind: Kind): void => {
    const { alone, nextToOthers, burst } = limits[kind];
    while (queue.waiting.length > 0) {
      const hasNeighbors = !isAlone(caller);
      if (queue.active >= (hasNeighbors ? nextToOthers : alone)) return;
      if (hasNeighbors) {
        const eachMs = queue.averageMs / nextToOthers;
        const at = Math.max(queue.nextAt, now() - eachMs * (burst - 1));
        if (at > now()) {
          queue.timer ??= setTimeout(() => {
            queue.timer = undefined;
            beginWhatMay(caller, queue, kind);
          }, at - now());
          return;
        }
        queue.nextAt = at + eachMs;
      }
      queue.active += 1;
      queue.waiting.shift()?.();
    }
  };

  return {
    /** @returns null after too long, or where too many wait */
    enter: (account_id: string, kind: Kind): Promise<Leave | null> => {
      const caller = note(account_id);
      const queue = caller.queues.get(kind) ?? newQueue(limits[kind]);
      caller.queues.set(kind, queue);
      const { waitingMax, waitMsMax } = limits[kind];
      if (queue.waiting.length >= waitingMax) return Promise.resolve(null);
      return new Promise((resolve) => {
        const leaveAfter =
          (beganAt: number): Leave =>
          (counts) => {
            queue.active -= 1;
            if (counts) queue.averageMs = (3 * queue.averageMs + now() - beganAt) / 4;
            beginWhatMay(caller, queue, kind);
          };
        const timer = setTimeout(() => {
          queue.waiting.splice(queue.waiting.indexOf(begin), 1);
          resolve(null);
        }, waitMsMax);
        const begin = () => {
          clearTimeout(timer);
          resolve(leaveAfter(now()));
        };
        queue.waiting.push(begin);
        beginWhatMay(caller, queue, kind);
      });
    },
  };
}

function newQueue({ expectedMs }: QueueLimits): Queue {
  return { active: 0, waiting: [], averageMs: expectedMs, nextAt: 0, timer: undefined };
}

function isEmpty({ active, waiting }: Queue): boolean {
  return active === 0 && waiting.length === 0;
}
