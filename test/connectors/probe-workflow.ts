import { proxyActivities } from '@temporalio/workflow';
import type {
  ConnectorActivities,
  SessionAnswer,
  SessionInstruction,
} from '../../connectors/contract/activities';

/** Instructs a connector as a lifecycle does: over its task queue. */
export async function probe(
  taskQueue: string,
  instruction: SessionInstruction,
): Promise<SessionAnswer> {
  const bank = proxyActivities<ConnectorActivities>({
    taskQueue,
    startToCloseTimeout: '10s',
    retry: { maximumAttempts: 3 },
  });
  return await bank.openSession(instruction);
}
