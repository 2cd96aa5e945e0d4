import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { ActFailure } from '../domain/act-failure';
import { configFaultOf } from './fault';

const CALL_TIMEOUT_MS = 5_000;

/**
 * Calls Temporal, within a time limit.
 * @throws ActFailure `temporal_unavailable`, `temporal_refused`; errors about the workflow itself pass as they are
 */
export async function inTime<T>(
  temporal: Client,
  call: () => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  try {
    return await temporal.withDeadline(Date.now() + timeoutMs, call);
  } catch (error) {
    if (error instanceof ActFailure) throw error;
    if (error instanceof WorkflowNotFoundError || isAlreadyStarted(error)) throw error;
    const fault = configFaultOf(error);
    if (fault !== undefined) throw new ActFailure('temporal_refused', fault.message);
    throw new ActFailure('temporal_unavailable', `Temporal did not do it: ${reasonOf(error)}`);
  }
}

/** Text of an unknown thrown value, with its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && cause.message !== message
    ? `${message}: ${reasonOf(cause)}`
    : message;
}

function isAlreadyStarted(error: unknown): boolean {
  return error instanceof Error && error.name === 'WorkflowExecutionAlreadyStartedError';
}
