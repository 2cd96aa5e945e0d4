import { type Client, isGrpcServiceError } from '@temporalio/client';

const NOT_FOUND = 5;

/**
 * Makes the server try an activity now, as attempt 1 of its count.
 * @param id the activity's
 * @returns whether the workflow runs and has the activity
 */
export async function retryNow(client: Client, workflowId: string, id: string): Promise<boolean> {
  const { namespace, identity } = client.options;
  try {
    await client.workflowService.resetActivity({
      ...{ namespace, identity, id },
      execution: { workflowId },
      keepPaused: true,
    });
    return true;
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) throw error;
    return false;
  }
}
