import type { Client } from '@temporalio/client';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { z } from 'zod';
import type { RequestHashes } from '../../src/encryption/request-fingerprint';
import { IDEMPOTENCY_MEMO } from '../../src/temporal/start';
import { replaySteps } from './replay';
import type { Step } from './steps';

export interface RunHistory {
  steps: Step[];
  startedAt: Date;
  memo: RequestHashes | undefined;
}

/** Reason why a resource can't be rebuilt; earlier writes stay. */
export class NotRebuilt extends Error {
  override readonly name = 'NotRebuilt';
  readonly outcome: 'short' | 'unreadable';

  constructor(outcome: 'short' | 'unreadable', message: string) {
    super(message);
    this.outcome = outcome;
  }
}

const Memo = z.object({ key: z.string(), body: z.string() });

interface Run {
  runId: string;
  startTime: Date;
  memo?: Record<string, unknown>;
}

/** @throws NotRebuilt when a history does not replay, or no run is left */
export async function readHistory(
  { temporal, workflowBundle }: { temporal: Client; workflowBundle: WorkflowBundleOption },
  workflowId: string,
): Promise<RunHistory> {
  const runs = await listRuns(temporal, workflowId);
  const [first] = runs;
  if (first === undefined)
    throw new NotRebuilt('unreadable', 'Temporal knows no run of it any more.');
  const steps: Step[] = [];
  for (const { runId } of runs) {
    const history = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
    try {
      steps.push(...(await replaySteps(workflowBundle, workflowId, history)));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new NotRebuilt('unreadable', `The history of run ${runId} does not replay: ${reason}`);
    }
  }
  const memo = Memo.safeParse(first.memo?.[IDEMPOTENCY_MEMO]).data;
  return { steps, startedAt: first.startTime, memo };
}

async function listRuns({ workflow }: Client, workflowId: string): Promise<Run[]> {
  const runs: Run[] = [];
  for await (const run of workflow.list({ query: `WorkflowId = '${workflowId}'` })) runs.push(run);
  return runs.toSorted((a, b) => a.startTime.getTime() - b.startTime.getTime());
}
