import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import type { History } from '@temporalio/common/lib/proto-utils';
import {
  DefaultLogger,
  type InjectedSinks,
  Runtime,
  Worker,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import { z } from 'zod';
import type { RequestHashes } from '../../src/encryption/request-fingerprint';
import { IDEMPOTENCY_MEMO } from '../../src/temporal/start';
import type { StepSinks } from './interceptors';
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

/** @throws NotRebuilt when a history does not replay, or no run is left */
export async function readHistory(
  { temporal, workflowBundle }: { temporal: Client; workflowBundle: WorkflowBundleOption },
  workflowId: string,
): Promise<RunHistory> {
  const runs: WorkflowExecutionInfo[] = [];
  const query = `WorkflowId = '${workflowId}'`;
  for await (const run of temporal.workflow.list({ query })) runs.push(run);
  runs.sort((a, b) => a.startTime.getTime() - b.startTime.getTime());
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

export function quietRuntime(): void {
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
}

/** @throws DeterminismViolationError when the history is of other code */
async function replaySteps(
  workflowBundle: WorkflowBundleOption,
  workflowId: string,
  history: History,
): Promise<Step[]> {
  const steps: Step[] = [];
  const ended = (_run: unknown, step: Step) => void steps.push(step);
  const sinks: InjectedSinks<StepSinks> = {
    steps: { ended: { fn: ended, callDuringReplay: true } },
  };
  await Worker.runReplayHistory({ workflowBundle, sinks }, history, workflowId);
  return steps;
}
