import {
  type Client,
  isGrpcDeadlineError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { CliFailure, reasonOf } from './failure';

const CALL_TIMEOUT_MS = 5_000;

/**
 * Calls Temporal, within a time limit.
 * @throws CliFailure `temporal_unavailable`; errors about the workflow itself pass as they are
 */
export async function inTime<T>(
  temporal: Client,
  call: () => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  try {
    return await temporal.withDeadline(Date.now() + timeoutMs, call);
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    if (error instanceof WorkflowNotFoundError || isAlreadyStarted(error)) throw error;
    throw new CliFailure('temporal_unavailable', `Temporal did not do it: ${reasonOf(error)}`);
  }
}

function isAlreadyStarted(error: unknown): boolean {
  return error instanceof Error && error.name === 'WorkflowExecutionAlreadyStartedError';
}

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
