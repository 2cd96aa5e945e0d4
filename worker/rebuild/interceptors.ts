import { proxySinks, type Sinks, type WorkflowInterceptors } from '@temporalio/workflow';
import type { Step } from './steps';

export interface StepSinks extends Sinks {
  steps: { ended(step: Step): void };
}

/**
 * Reports ended steps in order. A history has no inputs of local activities: the workflow's code
 * builds them again.
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
