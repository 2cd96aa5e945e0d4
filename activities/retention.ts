import { heartbeat } from '@temporalio/activity';
import type { Logger } from '../src/log';
import {
  blankPayers,
  deleteRecipients,
  type RetentionDeps,
  sealPayers,
} from '../src/merchants/retention';

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;

/** Activities that take away what was kept long enough; each may be cut short and run again. */
export function createRetentionActivities(
  deps: Omit<RetentionDeps, 'told'> & { log: Pick<Logger, 'info'> },
) {
  const run = (name: string, walk: (all: RetentionDeps) => Promise<number>) => async () => {
    const count = await walk({ ...deps, told: heartbeat });
    if (count > 0) deps.log.info({ count }, name);
    return count;
  };
  return {
    /** Deletes the details of recipients that were not paid for long, and ends open claims. */
    deleteOldRecipients: run('recipients deleted', deleteRecipients),
    /** Blanks payers by the time of each account. */
    blankOldPayers: run('payers blanked', blankPayers),
    /** Seals payers that were stored in clear. */
    sealOldPayers: run('payers sealed', sealPayers),
  };
}
