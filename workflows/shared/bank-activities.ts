import { ActivityCancellationType, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ConnectorActivities } from '../../connectors/contract/activities';
import { connectorQueue, readPrefix } from '../../src/domain/task-queues';

/** Time limit of one attempt of a connector. */
export const SEND_MS_MAX = 30_000;

/** Creates the bank's activities: `once` sends, `patient` looks up. */
export function moneyActivities<Activities extends object = ConnectorActivities>(
  connector: string,
  name: string,
) {
  const taskQueue = bankQueue(connector);
  return {
    // A single attempt, since a second could overtake the first. It may wait for a connector
    // without limit: a waiting attempt was not sent.
    once: proxyActivities<Activities>({
      taskQueue,
      startToCloseTimeout: SEND_MS_MAX,
      retry: { maximumAttempts: 1 },
      // Only the end of a started attempt has the outcome.
      cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
      summary: `Send the ${name} to the bank`,
    }),
    patient: proxyActivities<Activities>({
      taskQueue,
      startToCloseTimeout: '30s',
      retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '2 minutes' },
      summary: `Ask the bank what it knows of the ${name}`,
    }),
  };
}

export function bankQueue(connector: string): string {
  return connectorQueue(connector, readPrefix(workflowInfo().taskQueue));
}
