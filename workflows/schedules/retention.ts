import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { RetentionActivities } from '../../activities/schedules/retention';
import type { RetentionResult } from '../../src/domain/account/retention';

/** Heartbeats show a lost worker in a minute. */
const { deleteOldRecipients, blankOldPayers } = proxyActivities<RetentionActivities>({
  startToCloseTimeout: '2h',
  heartbeatTimeout: '1m',
  retry: { initialInterval: '10s', maximumInterval: '5m', maximumAttempts: 5 },
});

/** @see docs/operations.md#personal-data */
export async function retention(): Promise<RetentionResult> {
  setCurrentDetails('**Looking** for personal data at the end of its retention period.');
  const recipients = await deleteOldRecipients();
  const payers = await blankOldPayers();
  setCurrentDetails(`**Done.** ${recipients} recipients deleted, ${payers} payers redacted.`);
  return { recipients, payers };
}
