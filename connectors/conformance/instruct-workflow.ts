import { proxyActivities } from '@temporalio/workflow';

type Activity = (input: object) => Promise<unknown>;

/** Gives a connector one instruction over its task queue, as a lifecycle does, and once. */
export async function instructConnector(
  taskQueue: string,
  activity: string,
  input: object,
): Promise<unknown> {
  const connector = proxyActivities<Record<string, Activity>>({
    taskQueue,
    // Longer than an attempt of the contract, whose end is the connector's to bring about.
    startToCloseTimeout: '40s',
    scheduleToStartTimeout: '20s',
    retry: { maximumAttempts: 1 },
  });
  return await connector[activity]?.(input);
}
