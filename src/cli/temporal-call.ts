import {
  isGrpcDeadlineError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { CliFailure } from './failure';

/** Failure of an update: the workflow's refusal in its own words, or no answer in time. */
export function updateFailure(error: unknown, unknownOutcome: string): unknown {
  if (error instanceof WorkflowUpdateFailedError) {
    const { cause } = error;
    const code = cause instanceof ApplicationFailure ? cause.type : undefined;
    return new CliFailure(code ?? 'update_failed', cause?.message ?? error.message);
  }
  const isLate =
    error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isGrpcDeadlineError(error);
  return isLate ? new CliFailure('outcome_unknown', unknownOutcome) : error;
}
