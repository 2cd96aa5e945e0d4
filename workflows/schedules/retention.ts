import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { RetentionActivities } from '../../activities/schedules/retention';
import type { RetentionResult } from '../../src/domain/account/retention';

const { deleteOldRecipients, blankOldPayers, deleteOldRecords } =
  proxyActivities<RetentionActivities>({
    startToCloseTimeout: '2h',
    heartbeatTimeout: '1m',
    retry: { initialInterval: '10s', maximumInterval: '5m', maximumAttempts: 5 },
  });

/** @see docs/operations.md#what-grows */
export async function retention(): Promise<RetentionResult> {
  setCurrentDetails('**Looking** for what has reached the end of its retention period.');
  const recipients = await deleteOldRecipients();
  const payers = await blankOldPayers();
  const records = await deleteOldRecords();
  setCurrentDetails(
    `**Done.** ${recipients} recipients deleted, ${payers} payers redacted, ${records} events and ` +
      'callbacks deleted.',
  );
  return { recipients, payers, records };
}
