import { allHandlersFinished, condition, workflowInfo } from '@temporalio/workflow';
import { createAlarm, type Due } from './alarm';
import { StaleState } from './record';

interface Lifecycle<Item> {
  inbox: Item[];
  /** Handles an item whole: all that it changes is written when this returns. */
  handle: (item: Item) => Promise<void>;
  isFinal: () => boolean;
  /** Undefined when there is only to wait. */
  nextDue: () => Due | undefined;
  /** Whether what is due is usually overtaken by the end. @see createAlarm */
  endsSoon?: boolean;
  /** Whether nothing is under way that a new run would not take up. */
  isIdle: () => boolean;
  /** Goes on in a new run, which loads the stored state, before the history grows beyond its limit. */
  continueInNewRun: () => Promise<never>;
}

/** Takes in one item after the other; ends when the state is final and nothing is left to answer. */
export async function runUntilFinal<Item>(lifecycle: Lifecycle<Item>): Promise<void> {
  const { inbox, handle, isFinal, nextDue, isIdle, continueInNewRun, endsSoon = false } = lifecycle;
  const alarm = createAlarm(endsSoon);
  const ended = () => isFinal() && allHandlersFinished();
  const mail = () => inbox.length > 0 || ended();
  while (true) {
    for (let item = inbox.shift(); item !== undefined; item = inbox.shift()) {
      const current = item;
      await retryWhenStale(() => handle(current));
    }
    if (ended()) return;
    const isLong = workflowInfo().continueAsNewSuggested;
    if (isLong && isIdle() && allHandlersFinished()) await continueInNewRun();
    alarm.set(nextDue());
    await condition(() => mail() || alarm.rings());
    const due = mail() ? undefined : nextDue();
    // Where the state is stale, the next iteration decides again.
    if (due !== undefined && due.at <= Date.now()) await retryWhenStale(due.act, 1);
  }
}

/** Transitions that others can make while one item is handled: a resource makes a handful. */
const STALE_RETRIES_MAX = 10;

/** Decides again on the stored state, as often as the state is stale. */
async function retryWhenStale(
  act: () => Promise<void>,
  attempts = STALE_RETRIES_MAX,
): Promise<void> {
  for (let left = attempts; left > 0; left -= 1) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof StaleState)) throw error;
    }
  }
}
