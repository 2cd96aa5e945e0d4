import type { History } from '@temporalio/common/lib/proto-utils';
import {
  bundleWorkflowCode,
  DefaultLogger,
  type InjectedSinks,
  Runtime,
  Worker,
  type WorkflowBundle,
} from '@temporalio/worker';
import type { StepSinks } from './interceptors';
import type { Step } from './steps';

/** Workflows' code with the interceptors that tell of their steps; made in seconds. */
export async function bundleForReplay(): Promise<WorkflowBundle> {
  return await bundleWorkflowCode({
    workflowsPath: require.resolve('../../workflows'),
    workflowInterceptorModules: [require.resolve('./interceptors')],
    logger: new DefaultLogger('ERROR'),
  });
}

/** Keeps Temporal's own lines off the terminal. It counts for the whole process. */
export function quietRuntime(): void {
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
}

/**
 * Steps of one run whose end its history knows, with inputs as they were, since a replay makes the
 * same decisions at the same times.
 * @throws DeterminismViolationError when the history is of other code
 */
export async function stepsOf(
  workflowBundle: WorkflowBundle,
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
