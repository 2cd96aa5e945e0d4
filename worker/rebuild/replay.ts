import type { History } from '@temporalio/common/lib/proto-utils';
import {
  DefaultLogger,
  type InjectedSinks,
  Runtime,
  Worker,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { StepSinks } from './interceptors';
import type { Step } from './steps';

export function quietRuntime(): void {
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
}

/** @throws DeterminismViolationError when the history is of other code */
export async function replaySteps(
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
