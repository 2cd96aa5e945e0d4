import type { Logger } from '../../src/base/log';
import {
  deleteRecipients,
  deleteRecords,
  type RetentionDeps,
  redactPayers,
} from '../../src/service/operators/retention';
import type { Stores } from '../../src/store';
import { reportProgress } from '../shared/record';

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;

interface Deps extends Omit<RetentionDeps, 'onProgress'> {
  stores: RetentionDeps['stores'] & Pick<Stores, 'scheduleRuns'>;
  log: Pick<Logger, 'info'>;
}

export function createRetentionActivities(deps: Deps) {
  const run = (name: string, walk: (all: RetentionDeps) => Promise<number>) => async () => {
    const count = await walk({ ...deps, onProgress: reportProgress });
    if (count > 0) deps.log.info({ count }, name);
    return count;
  };
  return {
    deleteOldRecipients: run('recipients deleted', deleteRecipients),
    blankOldPayers: run('payers redacted', redactPayers),
    /** Last step, so it notes the run. */
    deleteOldRecords: async () => {
      const count = await run('records deleted', deleteRecords)();
      await deps.stores.scheduleRuns.note('retention', deps.now());
      return count;
    },
  };
}
