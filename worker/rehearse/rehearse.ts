import type { Client } from '@temporalio/client';
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { environmentQueue, type TaskQueues } from '../../src/domain/task-queues';
import { LIFECYCLES } from '../../src/lifecycles';
import type { WorkflowBundles } from '../bundle';
import { namePath } from './path';

const LIFECYCLE_TYPES = Object.values(LIFECYCLES).map(({ workflowType }) => workflowType);
const SCHEDULE_TYPES = ['audit', 'cryptoSettlements', 'ledgerCheck', 'retention'];

const TYPES: Record<'lifecycle' | 'webhooks', readonly string[]> = {
  lifecycle: [...LIFECYCLE_TYPES, 'accountClock', ...SCHEDULE_TYPES],
  webhooks: ['webhookDelivery'],
};

export interface RehearsalOptions {
  client: Client;
  bundles: Pick<WorkflowBundles, keyof typeof TYPES>;
  /** Base names: an installation may have a prefix. */
  queues: TaskQueues;
  /** Limit per type, of running and of closed runs. */
  most: number;
  onProgress?: (type: string, rehearsed: Rehearsed) => void;
}

interface Rehearsed {
  histories: number;
  paths: number;
}

interface Divergence {
  type: string;
  workflow_id: string;
  run_id: string;
  message: string;
}

export interface Rehearsal {
  types: ({ type: string } & Rehearsed)[];
  divergence: Divergence | null;
}

/**
 * Reads only, and ends at the first run that diverges.
 * @throws errors of Temporal
 * @see docs/operations.md#upgrading
 */
export async function rehearse(options: RehearsalOptions): Promise<Rehearsal> {
  const { bundles, queues } = options;
  const types: Rehearsal['types'] = [];
  for (const [bundle, names, queue] of [
    [bundles.lifecycle, TYPES.lifecycle, queues.lifecycleQueue],
    [bundles.webhooks, TYPES.webhooks, queues.webhookQueue],
  ] as const) {
    for (const type of names) {
      const rehearsed: Rehearsed = { histories: 0, paths: 0 };
      const divergence = await replayType(options, { type, queue, bundle, rehearsed });
      if (rehearsed.histories > 0) types.push({ type, ...rehearsed });
      if (divergence !== null) return { types, divergence };
    }
  }
  return { types, divergence: null };
}

interface Type {
  type: string;
  queue: string;
  bundle: WorkflowBundleOption;
  rehearsed: Rehearsed;
}

async function replayType(options: RehearsalOptions, runs: Type): Promise<Divergence | null> {
  const { type, bundle: workflowBundle } = runs;
  const results = Worker.runReplayHistories({ workflowBundle }, readPaths(options, runs));
  for await (const { workflowId, runId, error } of results) {
    if (error === undefined) continue;
    return { type, workflow_id: workflowId, run_id: runId, message: error.message };
  }
  return null;
}

async function* readPaths(
  { client, most, onProgress }: RehearsalOptions,
  { type, queue, rehearsed }: Type,
) {
  const queues = [false, true].map((livemode) => `'${environmentQueue(queue, livemode)}'`);
  const ours = `WorkflowType = '${type}' AND TaskQueue IN (${queues.join(', ')})`;
  const seen = new Set<string>();
  for (const status of ["= 'Running'", "!= 'Running'"]) {
    const query = `${ours} AND ExecutionStatus ${status}`;
    let left = most;
    for await (const { workflowId, runId } of client.workflow.list({ query, pageSize: 100 })) {
      if (left === 0) break;
      left -= 1;
      const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
      rehearsed.histories += 1;
      onProgress?.(type, rehearsed);
      const path = namePath(history);
      if (seen.has(path)) continue;
      seen.add(path);
      rehearsed.paths += 1;
      yield { workflowId, history };
    }
  }
}
