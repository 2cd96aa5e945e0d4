import { allHandlersFinished, condition, log, Trigger, workflowInfo } from '@temporalio/workflow';
import { createAlarm, type Due } from './alarm';
import { StaleState } from './record';
import { rejectUpdate } from './refusal';

interface Lifecycle<Item> {
  inbox: Item[];
  /** Returns when all changes of the item are written. */
  handle: (item: Item) => Promise<void>;
  isFinal: () => boolean;
  /** Undefined when nothing is due. */
  nextDue: () => Due | undefined;
  /** Whether the end usually comes before what is due. @see createAlarm */
  endsSoon?: boolean;
  /** Whether nothing is in progress that a new run could not continue. */
  isIdle: () => boolean;
  continueInNewRun: () => Promise<never>;
}

export async function runUntilFinal<Item>(lifecycle: Lifecycle<Item>): Promise<void> {
  const { inbox, handle, isFinal, nextDue, isIdle, continueInNewRun, endsSoon = false } = lifecycle;
  const alarm = createAlarm(endsSoon);
  const ended = () => isFinal() && allHandlersFinished();
  const mail = () => inbox.length > 0 || ended();
  while (true) {
    for (let item = inbox.shift(); item !== undefined; item = inbox.shift()) {
      const current = item;
      if (!(await retryWhenStale(() => handle(current)))) giveUp(current);
    }
    if (ended()) return;
    const isLong = workflowInfo().continueAsNewSuggested;
    if (isLong && isIdle() && allHandlersFinished()) await continueInNewRun();
    alarm.set(nextDue());
    await condition(() => mail() || alarm.hasFired());
    const due = mail() ? undefined : nextDue();
    // Where the state is stale, the next iteration decides again.
    if (due !== undefined && due.at <= Date.now()) await retryWhenStale(due.act, 1);
  }
}

/** Limit of concurrent transitions while one item is handled. */
const STALE_RETRIES_MAX = 10;

/** @returns whether it succeeded within its attempts */
async function retryWhenStale(
  act: () => Promise<void>,
  attempts = STALE_RETRIES_MAX,
): Promise<boolean> {
  for (let left = attempts; left > 0; left -= 1) {
    try {
      await act();
      return true;
    } catch (error) {
      if (!(error instanceof StaleState)) throw error;
    }
  }
  return false;
}

/** Fails the update that waits for it, so that the run can end. */
function giveUp(item: unknown): void {
  log.warn('A message was given up: the state in the database kept changing.');
  const { answer } = Object(item);
  if (!(answer instanceof Trigger)) return;
  const message = 'The state kept changing in the database; nothing was done. Try again.';
  rejectUpdate(answer, 'temporarily_unavailable', message);
}
