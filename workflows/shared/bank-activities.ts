import { ActivityCancellationType, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ConnectorActivities } from '../../connectors/contract/activities';
import { connectorQueue, readPrefix } from '../../src/domain/task-queues';

export const SEND_MS_MAX = 30_000;

/** `once` sends, `patient` looks up. */
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

/** Short, since an operator waits. @see askBank */
const CANCEL_MS_MAX = 4_000;
const QUESTION_MS_MAX = 8_000;

export function questionActivities<Activities extends object = ConnectorActivities>(
  connector: string,
  name: string,
) {
  const taskQueue = bankQueue(connector);
  return {
    // A single attempt: a connector that cannot cancel has not registered it.
    canceller: proxyActivities<Required<Activities>>({
      taskQueue,
      scheduleToCloseTimeout: CANCEL_MS_MAX,
      retry: { maximumAttempts: 1 },
      summary: `Cancel the ${name} at the bank`,
    }),
    asker: proxyActivities<Required<Activities>>({
      taskQueue,
      scheduleToCloseTimeout: QUESTION_MS_MAX,
      retry: { initialInterval: '500ms', backoffCoefficient: 2 },
      summary: `Ask the bank whether it holds the ${name}`,
    }),
  };
}

export function bankQueue(connector: string): string {
  return connectorQueue(connector, readPrefix(workflowInfo().taskQueue));
}
