import type { WorkflowClientInterceptor } from '@temporalio/client';
import type {
  ActivityInboundCallsInterceptor,
  ActivityInterceptorsFactory,
} from '@temporalio/worker';
import { z } from 'zod';
import { type Tracing, workflowSpan } from './tracing';

const RequestInput = z.object({ request_id: z.string() });

function readRequestId(args: readonly unknown[]): string | undefined {
  return RequestInput.safeParse(args[0]).data?.request_id;
}

/**
 * Each span is the parent of the workflow's activities in every process; nothing is written into
 * the workflow.
 */
export function traceStarts(tracing: Tracing): WorkflowClientInterceptor {
  const startInSpan = async <T>(
    workflowType: string,
    workflowId: string,
    args: readonly unknown[],
    start: () => Promise<T>,
  ): Promise<T> => {
    const requestId = readRequestId(args);
    if (requestId === undefined) return await start();
    const position = { requestId, spanName: workflowSpan(workflowId) };
    return await tracing.span(`start ${workflowType}`, 'client', position, (span) => {
      span.setAttributes({
        'temporal.workflow.type': workflowType,
        'temporal.workflow.id': workflowId,
      });
      return start();
    });
  };
  return {
    startWithDetails: (input, next) =>
      startInSpan(input.workflowType, input.options.workflowId, input.options.args, () =>
        next(input),
      ),
    startUpdateWithStart: (input, next) => {
      const { workflowId, args } = input.workflowStartOptions;
      return startInSpan(input.workflowType, workflowId, args, () => next(input));
    },
  };
}

export function traceActivities(tracing: Tracing): ActivityInterceptorsFactory {
  return ({ info }) => {
    const inbound: ActivityInboundCallsInterceptor = {
      execute: async (input, next) => {
        const requestId = readRequestId(input.args);
        const workflowId = info.workflowExecution?.workflowId;
        if (requestId === undefined || workflowId === undefined) return await next(input);
        const position = { requestId, parentName: workflowSpan(workflowId) };
        return await tracing.span(info.activityType, 'internal', position, (span) => {
          span.setAttributes({
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
