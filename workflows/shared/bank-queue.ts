import { workflowInfo } from '@temporalio/workflow';
import { connectorQueue, prefixOf } from '../../src/domain/task-queues';

/** Queue of a connector of the installation that this workflow belongs to. */
export function bankQueue(connector: string): string {
  return connectorQueue(connector, prefixOf(workflowInfo().taskQueue));
}
