import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { ConnectorActivities } from '../../connectors/contract/activities';
import { bankQueue } from './bank-queue';

/** The longest that a connector may be at one attempt. */
export const SEND_MS_MAX = 30_000;

/** The bank's activities for an instruction that moves money: `once` to send, `patient` to look up. */
export function moneyActivities<Activities extends object = ConnectorActivities>(
  connector: string,
  name: string,
) {
  const taskQueue = bankQueue(connector);
  return {
    // A single attempt, since a second could pass the first; and no limit to how long it may wait
    // for a connector, since an attempt that waits there was not sent.
    once: proxyActivities<Activities>({
      taskQueue,
      startToCloseTimeout: SEND_MS_MAX,
      retry: { maximumAttempts: 1 },
      // An attempt that a connector has started is waited for: only its end has the outcome.
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
