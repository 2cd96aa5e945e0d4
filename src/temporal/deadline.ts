import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { describeError } from '../base/errors';
import { isErrorCode, Refusal, ServiceError, unavailable } from '../domain/errors';
import { findConfigFault } from './fault';

/** The caller then retries with the same key. */
const CALL_TIMEOUT_MS = 8_000;

/** Maps errors of Temporal to the API's. */
export async function withinLimit<T>(client: Client, call: () => Promise<T>): Promise<T> {
  try {
    return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
  } catch (error) {
    throw toRefusal(error) ?? findConfigFault(error) ?? error;
  }
}

function toRefusal(error: unknown): Refusal | undefined {
  if (error instanceof WorkflowUpdateFailedError) {
    const code = getFailureCode(error);
    if (code === undefined || !isErrorCode(code)) return undefined;
    return new Refusal(code, error.cause instanceof Error ? error.cause.message : error.message);
  }
  // Only an operator can fix it, so the caller must not retry.
  if (findConfigFault(error) !== undefined) return undefined;
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isServiceError(error)) {
    return unavailable('The payment engine did not answer in time.', error);
  }
  return undefined;
}

function isServiceError(error: unknown): boolean {
  if (isGrpcServiceError(error)) return true;
  return error instanceof Error && error.cause !== undefined && isServiceError(error.cause);
}

const DEADLINE_EXCEEDED = 4;
const RESOURCE_EXHAUSTED = 8;

export function isTimeout(error: unknown): boolean {
  return hasGrpcCode(error, DEADLINE_EXCEEDED);
}

/** Says whether the server takes no more calls, or the workflow no more updates. */
export function isExhausted(error: unknown): boolean {
  return hasGrpcCode(error, RESOURCE_EXHAUSTED);
}

function hasGrpcCode(error: unknown, code: number): boolean {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return code === DEADLINE_EXCEEDED;
  if (isGrpcServiceError(error)) return error.code === code;
  return error instanceof Error && error.cause !== undefined && hasGrpcCode(error.cause, code);
}

/** `ApplicationFailure.type` of a refused update. */
export function getFailureCode({ cause }: WorkflowUpdateFailedError): string | undefined {
  return cause instanceof ApplicationFailure ? (cause.type ?? undefined) : undefined;
}

/** The operator repeats the command. */
const COMMAND_TIMEOUT_MS = 5_000;

/** @throws ServiceError `temporal_unavailable`, `temporal_refused`; errors of the workflow */
export async function withTimeout<T>(
  temporal: Client,
  call: () => Promise<T>,
  timeoutMs = COMMAND_TIMEOUT_MS,
): Promise<T> {
  try {
    return await temporal.withDeadline(Date.now() + timeoutMs, call);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    if (error instanceof WorkflowNotFoundError) throw error;
    if (error instanceof WorkflowExecutionAlreadyStartedError) throw error;
    const fault = findConfigFault(error);
    if (fault !== undefined) throw new ServiceError('temporal_refused', fault.message);
    throw new ServiceError(
      'temporal_unavailable',
      `Temporal did not do it: ${describeError(error)}`,
    );
  }
}
