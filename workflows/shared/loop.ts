import {
  allHandlersFinished,
  CancellationScope,
  condition,
  isCancellation,
  log,
  sleep,
  Trigger,
  workflowInfo,
} from '@temporalio/workflow';
import { BOOKS_REFUSED } from '../../src/domain/lifecycle';
import { LIMIT_REACHED } from '../../src/domain/operators/approval';
import { type AccountClock, now, toRealTime } from './clock';
import { StaleState } from './record';
import { findRefusal, rejectUpdate } from './refusal';

interface Lifecycle<Item> {
  inbox: Item[];
  clock: AccountClock;
  handle: (item: Item) => Promise<void>;
  /** @param refused why the books refused its entry; absent: the state kept changing */
  reportGivenUp: (what: string, refused?: string) => Promise<void>;
  isFinal: () => boolean;
  nextDue: () => Due | undefined;
  endsSoon?: boolean;
  isIdle: () => boolean;
  continueInNewRun: () => Promise<never>;
}

export async function runUntilFinal<Item extends { kind: string }>(
  lifecycle: Lifecycle<Item>,
): Promise<void> {
  const { inbox, handle, isFinal, isIdle, continueInNewRun, endsSoon = false } = lifecycle;
  const { reportGivenUp, clock } = lifecycle;
  let isDueRefused = false;
  const nextDue = () => (isDueRefused ? undefined : lifecycle.nextDue());
  const alarm = createAlarm(endsSoon);
  const ended = () => isFinal() && allHandlersFinished();
  const mail = () => inbox.length > 0 || ended();
  const wakes = () => mail() || alarm.hasFired() || clock.hasAdvanced;
  const mustRenew = () =>
    workflowInfo().continueAsNewSuggested && isIdle() && allHandlersFinished();
  while (true) {
    for (let item = inbox.shift(); item !== undefined; item = inbox.shift()) {
      const current = item;
      const outcome = await retryWhenStale(() => handle(current), { item: current });
      isDueRefused = false;
      if (outcome === 'done') continue;
      if (outcome === 'stale') {
        log.warn('A message was given up: the state in the database kept changing.');
        // Fails the update that waits, so that the run can end.
        if (refuse(current, 'temporarily_unavailable', STATE_CHANGING)) continue;
      }
      await reportGivenUp(describeItem(current), outcome === 'stale' ? undefined : outcome.refused);
    }
    if (ended()) return;
    if (mustRenew()) await continueInNewRun();
    const next = nextDue();
    const { offset_ms } = clock;
    clock.wait = isDue(clock, next) ? undefined : { offset_ms, due_at_ms: next?.at ?? null };
    alarm.set(next && { ...next, at: toRealTime(clock, next.at) });
    clock.hasAdvanced = false;
    // Repeats of a bank are in the history, and not in the inbox.
    await condition(() => wakes() || mustRenew());
    clock.wait = undefined;
    const due = mail() ? undefined : nextDue();
    // Where the state is stale, the next iteration decides again.
    if (due === undefined || !isDue(clock, due)) continue;
    const outcome = await retryWhenStale(due.act, { attempts: 1 });
    if (typeof outcome === 'string') continue;
    // Until a message changes something, it would be refused again.
    isDueRefused = true;
    await reportGivenUp(due.summary, outcome.refused);
  }
}

function isDue(clock: AccountClock, due: Due | undefined): boolean {
  return due !== undefined && due.at <= now({ clock });
}

/** Concurrent transitions while one item is handled. */
const STALE_RETRIES_MAX = 10;

/** Refusals of an act by its activity; nothing is written then. */
const ACT_REFUSALS = [
  'approval_decided',
  'evidence_not_supported',
  'money_in_suspense',
  BOOKS_REFUSED,
];

interface Retry {
  attempts?: number;
  /** Item whose update is refused as its activity says. */
  item?: unknown;
}

type Outcome = 'done' | 'stale' | { refused: string };

async function retryWhenStale(
  act: () => Promise<void>,
  { attempts = STALE_RETRIES_MAX, item }: Retry,
): Promise<Outcome> {
  for (let left = attempts; left > 0; left -= 1) {
    try {
      await act();
      return 'done';
    } catch (error) {
      for (const code of ACT_REFUSALS) {
        const message = findRefusal(error, code);
        if (message !== undefined && refuse(item, code, message)) return 'done';
      }
      const refused = findRefusal(error, BOOKS_REFUSED);
      if (refused !== undefined) return { refused };
      const isAboveLimit = findRefusal(error, LIMIT_REACHED) !== undefined;
      // The act asks again, and finds the limit reached.
      if (isAboveLimit) Object.assign(Object(item), { isAboveLimit });
      else if (!(error instanceof StaleState)) throw error;
    }
  }
  return 'stale';
}

const STATE_CHANGING = 'The state kept changing in the database; nothing was done. Try again.';

/** Fails the waiting update. @returns whether one waits */
function refuse(item: unknown, code: string, message: string): boolean {
  const { answer } = Object(item);
  if (!(answer instanceof Trigger)) return false;
  rejectUpdate(answer, code, message);
  return true;
}

function describeItem(item: { kind: string }): string {
  const { kind, name, callback, answer } = { name: '', callback: {}, answer: {}, ...item };
  const { callback_id } = Object(callback);
  if (callback_id !== undefined) return `callback ${name} (${callback_id})`;
  const { outcome } = Object(answer);
  return outcome === undefined ? kind : `${kind} of the bank: ${outcome}`;
}

export interface Due {
  /** Ms since the epoch, account time; for the alarm real time. */
  at: number;
  summary: string;
  act: () => Promise<void>;
}

interface Timer {
  at: number;
  hasFired: boolean;
  cancel: () => void;
}

/**
 * Creates the one timer of a run. It is not cancelled while its time stays, nor at the end, since a
 * cancelled timer adds a line to the history.
 * @param isLazy lets it fire early rather than be set later: saves two lines where the end usually
 *   comes first, and costs five otherwise
 */
function createAlarm(isLazy: boolean) {
  let timer: Timer | undefined;
  const canStay = ({ at, hasFired }: Timer, due: Due) =>
    !hasFired && (at === due.at || (isLazy && at < due.at));
  return {
    set: (due: Due | undefined): void => {
      if (due !== undefined && timer !== undefined && canStay(timer, due)) return;
      if (timer?.hasFired === false) timer.cancel();
      timer = due === undefined ? undefined : arm(due);
    },
    hasFired: (): boolean => timer?.hasFired === true,
  };
}

function arm({ at, summary }: Due): Timer {
  const scope = new CancellationScope();
  const timer = { at, hasFired: false, cancel: () => scope.cancel() };
  const fire = () => {
    timer.hasFired = true;
  };
  const unlessCancelled = (error: unknown) => {
    if (!isCancellation(error)) throw error;
  };
  const left = Math.max(1, at - Date.now());
  void scope.run(() => sleep(left, { summary })).then(fire, unlessCancelled);
  return timer;
}
