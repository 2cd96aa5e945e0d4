import type { Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Logger } from '../base/log';
import { reportsStuck, STEP_STUCK_SIGNAL } from '../domain/operators/operator-act';
import { BooksRefused } from '../ledger/ledger-accounts';

const SIGNAL_MS_MAX = 2_000;

/**
 * Notifies a lifecycle that a step fails again and again, without the database, which most such
 * steps wait for.
 * @see docs/operators.md#a-step-that-is-stuck
 */
export function reportStuckSteps(
  temporal: Client,
  workflowTypes: ReadonlySet<string>,
  log: Pick<Logger, 'warn'>,
): ActivityInterceptorsFactory {
  return ({ info }) => ({
    inbound: {
      execute: async (input, next) => {
        const { attempt, activityType, workflowExecution, workflowType = '' } = info;
        if (workflowExecution && workflowTypes.has(workflowType) && reportsStuck(attempt)) {
          const { workflowId, runId } = workflowExecution;
          const fields = { workflow_id: workflowId, activity: activityType, attempt };
          log.warn({ ...fields, code: 'step_stuck' }, 'a step of a workflow is stuck');
          // The attempt matters more than its report.
          await temporal
            .withDeadline(Date.now() + SIGNAL_MS_MAX, () =>
              temporal.workflow
                .getHandle(workflowId, runId)
                .signal(STEP_STUCK_SIGNAL, activityType),
            )
            .catch((err: unknown) => log.warn({ ...fields, err }, 'a stuck step is not reported'));
        }
        return await next(input);
      },
    },
  });
}

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
