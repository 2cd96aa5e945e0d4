import type { Client } from '@temporalio/client';
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { environmentQueue, type TaskQueues } from '../../src/domain/task-queues';
import { LIFECYCLES } from '../../src/lifecycles';
import type { WorkflowBundles } from '../bundle';
import { namePath } from './path';

const LIFECYCLE_TYPES = Object.values(LIFECYCLES).map(({ workflowType }) => workflowType);
const SCHEDULE_TYPES = ['audit', 'cryptoSettlements', 'ledgerCheck', 'retention'];

/** Types of workflow that each bundle has. */
const TYPES: Record<'lifecycle' | 'webhooks', readonly string[]> = {
  lifecycle: [...LIFECYCLE_TYPES, 'accountClock', ...SCHEDULE_TYPES],
  webhooks: ['webhookDelivery'],
};

export interface RehearsalOptions {
  client: Client;
  bundles: Pick<WorkflowBundles, keyof typeof TYPES>;
  /** Base names: an installation that shares its namespace has a prefix. */
  queues: TaskQueues;
  /** Most runs of each type that are read, of the running and of the closed ones. */
  most: number;
  /** @param type of the workflows that are read now */
  onProgress?: (type: string, rehearsed: Rehearsed) => void;
}

interface Rehearsed {
  histories: number;
  /** Different paths, each of which was replayed once. */
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
  /** First run that does not replay under this build. */
  divergence: Divergence | null;
}

/**
 * Replays running workflows, and those that closed last, under the workflow code of this build. It
 * only reads, and ends at the first that diverges.
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

/** Reads histories, and passes on the first of each path. */
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
