import { CancellationScope, isCancellation, sleep } from '@temporalio/workflow';

/** A step that is taken by itself when nothing comes until then. */
export interface Due {
  /** In ms since the epoch. */
  at: number;
  summary: string;
  act: () => Promise<void>;
}

interface Armed {
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
  let armed: Armed | undefined;
  const isKept = ({ at, rang }: Armed, due: Due) =>
    !rang && (at === due.at || (isLazy && at < due.at));
  return {
    /** Brings the timer in line with what is due; undefined: nothing is. */
    set: (due: Due | undefined): void => {
      if (due !== undefined && armed !== undefined && isKept(armed, due)) return;
      if (armed?.rang === false) armed.cancel();
      armed = due === undefined ? undefined : arm(due);
    },
    /** Whether it has rung since it was set. */
    rings: (): boolean => armed?.rang === true,
  };
}

function arm({ at, summary }: Due): Armed {
  const scope = new CancellationScope();
  const armed = { at, rang: false, cancel: () => scope.cancel() };
  const ring = () => {
    armed.rang = true;
  };
  const unlessCancelled = (error: unknown) => {
    if (!isCancellation(error)) throw error;
  };
  const left = Math.max(1, at - Date.now());
  void scope.run(() => sleep(left, { summary })).then(ring, unlessCancelled);
  return armed;
}
