import { workflowInfo } from '@temporalio/workflow';
import { connectorQueue, readPrefix } from '../../src/domain/task-queues';

/** Builds the name of a connector's queue in the installation of this workflow. */
export function bankQueue(connector: string): string {
  return connectorQueue(connector, readPrefix(workflowInfo().taskQueue));
}
