import { type Client, isGrpcServiceError } from '@temporalio/client';

const NOT_FOUND = 5;

/** Lets the activity that a workflow retries be tried now; nothing where none waits. */
export async function retryNow(client: Client, workflowId: string, type: string): Promise<void> {
  const { namespace, identity } = client.options;
  try {
    await client.workflowService.resetActivity({
      ...{ namespace, identity, type },
      execution: { workflowId },
      keepPaused: true,
    });
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) throw error;
  }
}
