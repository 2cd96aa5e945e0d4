import { allHandlersFinished, condition, workflowInfo } from '@temporalio/workflow';
import { createAlarm, type Due } from './alarm';
import { RecordAhead } from './record';

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
  /** Goes on in a new run, which loads the record, before the history grows beyond its limit. */
  startAfresh: () => Promise<never>;
}

/** Takes in one item after the other; ends when the state is final and nothing is left to answer. */
export async function runUntilFinal<Item>(lifecycle: Lifecycle<Item>): Promise<void> {
  const { inbox, handle, isFinal, nextDue, isIdle, startAfresh, endsSoon = false } = lifecycle;
  const alarm = createAlarm(endsSoon);
  const ended = () => isFinal() && allHandlersFinished();
  const mail = () => inbox.length > 0 || ended();
  while (true) {
    for (let item = inbox.shift(); item !== undefined; item = inbox.shift()) {
      const taken = item;
      await onTheRecord(() => handle(taken));
    }
    if (ended()) return;
    const isLong = workflowInfo().continueAsNewSuggested;
    if (isLong && isIdle() && allHandlersFinished()) await startAfresh();
    alarm.set(nextDue());
    await condition(() => mail() || alarm.rings());
    const due = mail() ? undefined : nextDue();
    // Decided anew by the next turn, should the record be ahead.
    if (due !== undefined && due.at <= Date.now()) await onTheRecord(due.act, 1);
  }
}

/** Moves that a record can be ahead by while one item is handled: a resource makes a handful. */
const AHEAD_MAX = 10;

/** Decides again on the state that the record says, as often as the record is found ahead. */
async function onTheRecord(act: () => Promise<void>, attempts = AHEAD_MAX): Promise<void> {
  for (let left = attempts; left > 0; left -= 1) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof RecordAhead)) throw error;
    }
  }
}
