import type { Client } from '@temporalio/client';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { z } from 'zod';
import type { ClaimMark } from '../../src/keys/claim-mark';
import { CLAIM_MEMO } from '../../src/temporal/start';
import { stepsOf } from './replay';
import type { Step } from './steps';

/** Everything that Temporal still knows of a resource. */
export interface Past {
  /** Steps of every run, the oldest first. */
  steps: Step[];
  /** Start of the oldest run. */
  startedAt: Date;
  /** Mark of its claim; undefined when the workflow carries none. */
  mark: ClaimMark | undefined;
}

/** Reason why a resource can't be rebuilt; what was written before stands, and is not written again. */
export class Left extends Error {
  override readonly name = 'Left';
  readonly outcome: 'short' | 'unreadable';

  constructor(outcome: 'short' | 'unreadable', message: string) {
    super(message);
    this.outcome = outcome;
  }
}

const Mark = z
  .object({ key: z.string(), body: z.string(), token_kid: z.string() })
  .partial({ token_kid: true });

interface Run {
  runId: string;
  startTime: Date;
  memo?: Record<string, unknown>;
}

/** @throws Left when a history does not replay, or the server knows no run any more */
export async function pastOf(
  { temporal, workflowBundle }: { temporal: Client; workflowBundle: WorkflowBundleOption },
  workflowId: string,
): Promise<Past> {
  const runs = await runsOf(temporal, workflowId);
  const [first] = runs;
  if (first === undefined) throw new Left('unreadable', 'Temporal knows no run of it any more.');
  const steps: Step[] = [];
  for (const { runId } of runs) {
    const history = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
    try {
      steps.push(...(await stepsOf(workflowBundle, workflowId, history)));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Left('unreadable', `The history of run ${runId} does not replay: ${reason}`);
    }
  }
  const mark = Mark.safeParse(first.memo?.[CLAIM_MEMO]).data;
  return { steps, startedAt: first.startTime, mark };
}

async function runsOf({ workflow }: Client, workflowId: string): Promise<Run[]> {
  const runs: Run[] = [];
  for await (const run of workflow.list({ query: `WorkflowId = '${workflowId}'` })) runs.push(run);
  return runs.toSorted((a, b) => a.startTime.getTime() - b.startTime.getTime());
}
