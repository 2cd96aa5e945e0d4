import type { Client } from '@temporalio/client';

/** Returns the earliest time from which the namespace still stores closed workflows. */
export async function getRetentionStart(
  { workflowService, options }: Client,
  now: Date,
): Promise<Date> {
  const { namespace } = options;
  const { config } = await workflowService.describeNamespace({ namespace });
  const seconds = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  return new Date(now.getTime() - seconds * 1_000);
}
