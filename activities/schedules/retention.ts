import { heartbeat } from '@temporalio/activity';
import type { Logger } from '../../src/base/log';
import { deleteRecipients, type RetentionDeps, redactPayers } from '../../src/service/retention';

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;

export function createRetentionActivities(
  deps: Omit<RetentionDeps, 'onProgress'> & { log: Pick<Logger, 'info'> },
) {
  const run = (name: string, walk: (all: RetentionDeps) => Promise<number>) => async () => {
    const count = await walk({ ...deps, onProgress: heartbeat });
    if (count > 0) deps.log.info({ count }, name);
    return count;
  };
  return {
    deleteOldRecipients: run('recipients deleted', deleteRecipients),
    blankOldPayers: run('payers redacted', redactPayers),
  };
}
