import type { Client } from '@temporalio/client';

/** Temporal's `TASK_QUEUE_TYPE`. */
export const QUEUE_TYPES = { workflow: 1, activity: 2 } as const;

/** Temporal lists one that polled within five minutes; a poll lasts a minute at most. */
const POLLER_MS = 70_000;

export interface TaskQueueState {
  /** Processes that take its tasks now. */
  pollers: number;
  /** Tasks that wait, about. */
  waiting: number;
  /** Age of the oldest one, in seconds. */
  oldest_seconds: number;
}

export async function readTaskQueue(
  { workflowService }: Pick<Client, 'workflowService'>,
  { namespace, name, type }: { namespace: string; name: string; type: keyof typeof QUEUE_TYPES },
): Promise<TaskQueueState> {
  const { pollers, stats } = await workflowService.describeTaskQueue({
    ...{ namespace, taskQueue: { name }, taskQueueType: QUEUE_TYPES[type], reportStats: true },
  });
  const alive = (pollers ?? []).filter(({ lastAccessTime }) => {
    const seconds = Number(lastAccessTime?.seconds ?? 0);
    return Date.now() - seconds * 1_000 < POLLER_MS;
  });
  return {
    pollers: alive.length,
    waiting: Number(stats?.approximateBacklogCount ?? 0),
    oldest_seconds: Number(stats?.approximateBacklogAge?.seconds ?? 0),
  };
}
