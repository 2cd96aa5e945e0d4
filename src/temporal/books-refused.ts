import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Logger } from '../base/log';
import { BooksRefused } from '../ledger/validators';

/** Makes activities fail for good where the books refuse an entry: a retry would be refused again. */
export function failRefusedBooks(log: Pick<Logger, 'error'>): ActivityInterceptorsFactory {
  return ({ info: { activityType: activity, workflowExecution } }) => ({
    inbound: {
      execute: async (input, next) => {
        try {
          return await next(input);
        } catch (error) {
          if (!(error instanceof BooksRefused)) throw error;
          const { code, message } = error;
          log.error({ workflow_id: workflowExecution?.workflowId, activity, code }, message);
          throw ApplicationFailure.nonRetryable(message, code);
        }
      },
    },
  });
}
