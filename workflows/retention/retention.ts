import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { RetentionActivities } from '../../activities/retention';
import type { RetentionResult } from '../../src/domain/retention';

/** A walk may be long; each step of it is told, so that a lost worker is noticed in a minute. */
const { deleteOldRecipients, blankOldPayers, sealOldPayers } = proxyActivities<RetentionActivities>(
  {
    startToCloseTimeout: '2h',
    heartbeatTimeout: '1m',
    retry: { initialInterval: '10s', maximumInterval: '5m', maximumAttempts: 5 },
  },
);

/**
 * Takes away what identifies people and has been kept long enough. A run that is cut short goes on
 * where the records stand.
 * @see docs/operations.md#personal-data
 */
export async function retention(): Promise<RetentionResult> {
  setCurrentDetails('**Looking** for what was kept long enough.');
  const recipients = await deleteOldRecipients();
  const payers = await blankOldPayers();
  const sealed = await sealOldPayers();
  const done = [
    `${recipients} recipients deleted, ${payers} payers blanked.`,
    ...(sealed === 0 ? [] : [`${sealed} payers sealed that stood in clear.`]),
  ];
  setCurrentDetails(`**Done.** ${done.join(' ')}`);
  return { recipients, payers, sealed };
}
