import { CancellationScope, isCancellation, sleep } from '@temporalio/workflow';

/** A step that is taken by itself when nothing comes until then. */
export interface Due {
  /** In ms since the epoch. */
  at: number;
  summary: string;
  act: () => Promise<void>;
}

interface Timer {
  at: number;
  rang: boolean;
  cancel: () => void;
}

/**
 * Keeps one timer for all that is due in a run. It is left alone while its time stays, and at the
 * end of the run, since each cancelled timer is a line of history.
 * @param isLazy leaves it alone for a later time, too, so that it rings early and is set again: it
 *   saves two lines where the end usually comes first, and costs five where it doesn't
 */
export function createAlarm(isLazy: boolean) {
  let timer: Timer | undefined;
  const canStay = ({ at, rang }: Timer, due: Due) =>
    !rang && (at === due.at || (isLazy && at < due.at));
  return {
    /** Brings the timer in line with what is due; undefined: nothing is. */
    set: (due: Due | undefined): void => {
      if (due !== undefined && timer !== undefined && canStay(timer, due)) return;
      if (timer?.rang === false) timer.cancel();
      timer = due === undefined ? undefined : arm(due);
    },
    /** Whether it has rung since it was set. */
    rings: (): boolean => timer?.rang === true,
  };
}

function arm({ at, summary }: Due): Timer {
  const scope = new CancellationScope();
  const timer = { at, rang: false, cancel: () => scope.cancel() };
  const ring = () => {
    timer.rang = true;
  };
  const unlessCancelled = (error: unknown) => {
    if (!isCancellation(error)) throw error;
  };
  const left = Math.max(1, at - Date.now());
  void scope.run(() => sleep(left, { summary })).then(ring, unlessCancelled);
  return timer;
}
