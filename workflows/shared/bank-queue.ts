import { workflowInfo } from '@temporalio/workflow';
import { connectorQueue, readPrefix } from '../../src/domain/task-queues';

/** Queue of a connector of the installation that this workflow belongs to. */
export function bankQueue(connector: string): string {
  return connectorQueue(connector, readPrefix(workflowInfo().taskQueue));
}
