import { isGrpcServiceError } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';

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
