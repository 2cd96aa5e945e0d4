import type { WorkflowClientInterceptor } from '@temporalio/client';
import type {
  ActivityInboundCallsInterceptor,
  ActivityInterceptorsFactory,
} from '@temporalio/worker';
import { z } from 'zod';
import { workflowSpan } from './ids';
import type { Tracing } from './tracing';

/** Inputs of workflows and steps name the request that they follow from. */
const Caused = z.object({ request_id: z.string() });

function requestOf(args: readonly unknown[]): string | undefined {
  return Caused.safeParse(args[0]).data?.request_id;
}

/**
 * Traces each start of a workflow. Its span is the one above the workflow's steps, wherever they run;
 * nothing is written into the workflow.
 */
export function traceStarts(tracing: Tracing): WorkflowClientInterceptor {
  const started = async <T>(
    workflowType: string,
    workflowId: string,
    args: readonly unknown[],
    start: () => Promise<T>,
  ): Promise<T> => {
    const requestId = requestOf(args);
    if (requestId === undefined) return await start();
    const place = { requestId, own: workflowSpan(workflowId) };
    return await tracing.span(`start ${workflowType}`, 'client', place, (span) => {
      span.tell({ 'temporal.workflow.type': workflowType, 'temporal.workflow.id': workflowId });
      return start();
    });
  };
  return {
    startWithDetails: (input, next) =>
      started(input.workflowType, input.options.workflowId, input.options.args, () => next(input)),
    startUpdateWithStart: (input, next) => {
      const { workflowId, args } = input.workflowStartOptions;
      return started(input.workflowType, workflowId, args, () => next(input));
    },
  };
}

/** Traces each attempt of a step, under the start of its workflow. */
export function traceSteps(tracing: Tracing): ActivityInterceptorsFactory {
  return ({ info }) => {
    const inbound: ActivityInboundCallsInterceptor = {
      execute: async (input, next) => {
        const requestId = requestOf(input.args);
        const workflowId = info.workflowExecution?.workflowId;
        if (requestId === undefined || workflowId === undefined) return await next(input);
        const place = { requestId, above: workflowSpan(workflowId) };
        return await tracing.span(info.activityType, 'internal', place, (span) => {
          span.tell({
            'temporal.workflow.type': info.workflowType ?? '',
            'temporal.workflow.id': workflowId,
            'temporal.activity.type': info.activityType,
            'temporal.attempt': info.attempt,
          });
          return next(input);
        });
      },
    };
    return { inbound };
  };
}
