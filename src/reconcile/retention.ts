import type { Client } from '@temporalio/client';

/** Earliest moment of which the namespace still holds workflows that have ended. */
export async function retentionOf({ workflowService, options }: Client, now: Date): Promise<Date> {
  const { namespace } = options;
  const { config } = await workflowService.describeNamespace({ namespace });
  const seconds = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  return new Date(now.getTime() - seconds * 1_000);
}
