import { allHandlersFinished, condition, log, Trigger, workflowInfo } from '@temporalio/workflow';
import { createAlarm, type Due } from './alarm';
import { type AccountClock, now, toRealTime } from './clock';
import { StaleState } from './record';
import { findRefusal, rejectUpdate } from './refusal';

interface Lifecycle<Item> {
  inbox: Item[];
  clock: AccountClock;
  handle: (item: Item) => Promise<void>;
  reportGivenUp: (item: Item) => Promise<void>;
  isFinal: () => boolean;
  nextDue: () => Due | undefined;
  /** @see createAlarm */
  endsSoon?: boolean;
  isIdle: () => boolean;
  continueInNewRun: () => Promise<never>;
}

export async function runUntilFinal<Item>(lifecycle: Lifecycle<Item>): Promise<void> {
  const { inbox, handle, isFinal, nextDue, isIdle, continueInNewRun, endsSoon = false } = lifecycle;
  const { reportGivenUp, clock } = lifecycle;
  const alarm = createAlarm(endsSoon);
  const ended = () => isFinal() && allHandlersFinished();
  const mail = () => inbox.length > 0 || ended();
  const wakes = () => mail() || alarm.hasFired() || clock.hasAdvanced;
  const mustRenew = () =>
    workflowInfo().continueAsNewSuggested && isIdle() && allHandlersFinished();
  while (true) {
    for (let item = inbox.shift(); item !== undefined; item = inbox.shift()) {
      const current = item;
      if (await retryWhenStale(() => handle(current), { item: current })) continue;
      if (!rejectAnswer(current)) await reportGivenUp(current);
    }
    if (ended()) return;
    if (mustRenew()) await continueInNewRun();
    alarm.set(awaitDue(clock, nextDue()));
    clock.hasAdvanced = false;
    // Repeats of a bank are in the history, and not in the inbox.
    await condition(() => wakes() || mustRenew());
    clock.wait = undefined;
    const due = mail() ? undefined : nextDue();
    // Where the state is stale, the next iteration decides again.
    if (due !== undefined && isDue(clock, due)) await retryWhenStale(due.act, { attempts: 1 });
  }
}

/** @returns the step, in real time */
function awaitDue(clock: AccountClock, due: Due | undefined): Due | undefined {
  const { offset_ms } = clock;
  const due_at_ms = due?.at ?? null;
  clock.wait = isDue(clock, due) ? undefined : { offset_ms, due_at_ms };
  return due && { ...due, at: toRealTime(clock, due.at) };
}

function isDue(clock: AccountClock, due: Due | undefined): boolean {
  return due !== undefined && due.at <= now({ clock });
}

/** Concurrent transitions while one item is handled. */
const STALE_RETRIES_MAX = 10;

interface Retry {
  attempts?: number;
  /** Item whose update is refused when its approval has ended meanwhile. */
  item?: unknown;
}

async function retryWhenStale(
  act: () => Promise<void>,
  { attempts = STALE_RETRIES_MAX, item }: Retry,
): Promise<boolean> {
  for (let left = attempts; left > 0; left -= 1) {
    try {
      await act();
      return true;
    } catch (error) {
      const ended = findRefusal(error, 'approval_decided');
      if (ended !== undefined && refuse(item, 'approval_decided', ended)) return true;
      if (!(error instanceof StaleState)) throw error;
    }
  }
  return false;
}

/**
 * Fails the waiting update, so that the run can end.
 * @returns whether one waits
 */
function rejectAnswer(item: unknown): boolean {
  log.warn('A message was given up: the state in the database kept changing.');
  const message = 'The state kept changing in the database; nothing was done. Try again.';
  return refuse(item, 'temporarily_unavailable', message);
}

function refuse(item: unknown, code: string, message: string): boolean {
  const { answer } = Object(item);
  if (!(answer instanceof Trigger)) return false;
  rejectUpdate(answer, code, message);
  return true;
}

export function describeItem(item: { kind: string }): string {
  const { kind, name, callback, answer } = { name: '', callback: {}, answer: {}, ...item };
  const { callback_id } = Object(callback);
  if (callback_id !== undefined) return `callback \`${name}\` (${callback_id})`;
  const { outcome } = Object(answer);
  return outcome === undefined ? kind : `${kind} of the bank: ${outcome}`;
}
