import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { describeError } from '../base/errors';
import { ServiceError } from '../domain/errors';
import { findConfigFault } from './fault';

const CALL_TIMEOUT_MS = 5_000;

/** @throws ServiceError `temporal_unavailable`, `temporal_refused`; errors of the workflow */
export async function withTimeout<T>(
  temporal: Client,
  call: () => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  try {
    return await temporal.withDeadline(Date.now() + timeoutMs, call);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    if (error instanceof WorkflowNotFoundError || isAlreadyStarted(error)) throw error;
    const fault = findConfigFault(error);
    if (fault !== undefined) throw new ServiceError('temporal_refused', fault.message);
    throw new ServiceError(
      'temporal_unavailable',
      `Temporal did not do it: ${describeError(error)}`,
    );
  }
}

function isAlreadyStarted(error: unknown): boolean {
  return error instanceof Error && error.name === 'WorkflowExecutionAlreadyStartedError';
}
