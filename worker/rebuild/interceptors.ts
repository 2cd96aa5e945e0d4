import { proxySinks, type Sinks, type WorkflowInterceptors } from '@temporalio/workflow';
import type { Step } from './steps';

/** Sink for the steps of a workflow that is replayed. */
export interface StepSinks extends Sinks {
  steps: { ended(step: Step): void };
}

/**
 * Tells of every step whose end the history knows, in the order in which they ended. A history holds
 * no inputs of local activities: the workflow's own code makes them again.
 */
export function interceptors(): WorkflowInterceptors {
  const { steps } = proxySinks<StepSinks>();
  const reportStep = async (
    activity: string,
    [input]: readonly unknown[],
    ending: Promise<unknown>,
  ) => {
    const result = await ending;
    steps.ended({ activity, input, result });
    return result;
  };
  return {
    outbound: [
      {
        scheduleActivity: (call, next) => reportStep(call.activityType, call.args, next(call)),
        scheduleLocalActivity: (call, next) => reportStep(call.activityType, call.args, next(call)),
      },
    ],
  };
}
