import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, NamespaceNotFoundError } from '@temporalio/common';
import { describeError } from '../base/errors';
import { isErrorCode, Refusal, ServiceError, unavailable } from '../domain/errors';

/** A retry can't fix it; the message is for the operator. */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault';
}

/** gRPC code. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;
const DENIED = [PERMISSION_DENIED, UNIMPLEMENTED];

const TLS_WORDS = /certificate|altnames|handshake|wrong version number|SSL routines|tlsv1/i;

/** Explains an error that a wrong credential, namespace or search attribute causes. */
export function findConfigFault(error: unknown): ConfigFault | undefined {
  return findFault(error, explainError);
}

/** Explains a TLS mismatch, too, which may be temporary once a process has connected. */
export function findConnectFault(error: unknown): ConfigFault | undefined {
  return findFault(error, (each) => {
    const explanation = explainError(each);
    if (explanation !== undefined || !isGrpcServiceError(each)) return explanation;
    const isTls = Number(each.code) === UNAVAILABLE && TLS_WORDS.test(each.details);
    return isTls
      ? `Temporal is not reached by TLS as set (TEMPORAL_TLS_…): ${each.details}`
      : undefined;
  });
}

/** Whether Temporal, or a proxy before it, will never answer such a call. */
export function isDenied(error: unknown): boolean {
  if (isGrpcServiceError(error)) return DENIED.includes(Number(error.code));
  return error instanceof Error && error.cause !== undefined && isDenied(error.cause);
}

function findFault(
  error: unknown,
  explain: (error: unknown) => string | undefined,
): ConfigFault | undefined {
  if (error instanceof ConfigFault) return error;
  const explanation = explain(error);
  if (explanation !== undefined) return new ConfigFault(explanation, { cause: error });
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? undefined : findFault(cause, explain);
}

function explainError(error: unknown): string | undefined {
  if (error instanceof NamespaceNotFoundError) {
    return `Temporal has no namespace ${error.namespace} (TEMPORAL_NAMESPACE).`;
  }
  if (!isGrpcServiceError(error)) return undefined;
  const { details } = error;
  switch (Number(error.code)) {
    case UNAUTHENTICATED:
      return `Temporal does not know this process (TEMPORAL_API_KEY, TEMPORAL_TLS_…): ${details}`;
    case PERMISSION_DENIED:
      return `Temporal denies this process permission (TEMPORAL_API_KEY): ${details}`;
    case NOT_FOUND:
      return /namespace/i.test(details) ? `${details} (TEMPORAL_NAMESPACE)` : undefined;
    case INVALID_ARGUMENT:
      return /search attribute/i.test(details)
        ? `Temporal lacks a search attribute (the command \`migrate\` registers it): ${details}`
        : undefined;
    default:
      return undefined;
  }
}

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
