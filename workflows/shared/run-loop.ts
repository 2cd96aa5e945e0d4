import { allHandlersFinished, condition } from '@temporalio/workflow';

/** A step that is taken by itself when nothing comes until then. */
export interface Due {
  /** In ms since the epoch. */
  at: number;
  summary: string;
  act: () => Promise<void>;
}

interface Lifecycle<Item> {
  inbox: Item[];
  /** Handles an item whole: all that it changes is written when this returns. */
  handle: (item: Item) => Promise<void>;
  isFinal: () => boolean;
  /** Undefined when there is only to wait. */
  nextDue: () => Due | undefined;
}

/** Takes in one item after the other; ends when the state is final and nothing is left to answer. */
export async function runUntilFinal<Item>(lifecycle: Lifecycle<Item>): Promise<void> {
  const { inbox, handle, isFinal, nextDue } = lifecycle;
  const ended = () => isFinal() && allHandlersFinished();
  const mail = () => inbox.length > 0 || ended();
  while (true) {
    for (let item = inbox.shift(); item !== undefined; item = inbox.shift()) {
      await handle(item);
    }
    if (ended()) return;
    const due = nextDue();
    if (due === undefined) await condition(mail);
    else if (!(await condition(mail, Math.max(1, due.at - Date.now()), { summary: due.summary }))) {
      await due.act();
    }
  }
}
