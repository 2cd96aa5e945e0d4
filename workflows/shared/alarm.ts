import { CancellationScope, isCancellation, sleep } from '@temporalio/workflow';

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
export function createAlarm(isLazy: boolean) {
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
