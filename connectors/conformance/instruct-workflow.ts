import { proxyActivities } from '@temporalio/workflow';

type Activity = (input: object) => Promise<unknown>;

export async function instructConnector(
  taskQueue: string,
  activity: string,
  input: object,
): Promise<unknown> {
  const connector = proxyActivities<Record<string, Activity>>({
    taskQueue,
    // Longer than an attempt of the contract, which the connector must end itself.
    startToCloseTimeout: '40s',
    scheduleToStartTimeout: '20s',
    retry: { maximumAttempts: 1 },
  });
  return await connector[activity]?.(input);
}
