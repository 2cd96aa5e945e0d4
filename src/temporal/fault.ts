import { isGrpcServiceError } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';

/** Fault of what a process was given; trying again can't mend it, so it is said to an operator. */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault';
}

/** Numbers of gRPC. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** Words in which a connection tells that the two sides do not agree about TLS. */
const TLS_WORDS = /certificate|altnames|handshake|wrong version number|SSL routines|tlsv1/i;

/**
 * Explains an error of Temporal that is a fault of the configuration: who this process is, the
 * namespace, a search attribute. Undefined for any other error, such as a server that is away.
 */
export function configFaultOf(error: unknown): ConfigFault | undefined {
  return faultOf(error, wordsFor);
}

/**
 * Explains a fault of the configuration, TLS that the two sides do not agree about included: while a
 * process connects it is one, later it may pass.
 */
export function connectFaultOf(error: unknown): ConfigFault | undefined {
  return faultOf(error, (each) => wordsFor(each) ?? wordsForTls(each));
}

function faultOf(
  error: unknown,
  explain: (error: unknown) => string | undefined,
): ConfigFault | undefined {
  if (error instanceof ConfigFault) return error;
  const words = explain(error);
  if (words !== undefined) return new ConfigFault(words, { cause: error });
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? undefined : faultOf(cause, explain);
}

function wordsFor(error: unknown): string | undefined {
  if (error instanceof NamespaceNotFoundError) {
    return `Temporal has no namespace ${error.namespace} (TEMPORAL_NAMESPACE).`;
  }
  if (!isGrpcServiceError(error)) return undefined;
  const { details } = error;
  switch (Number(error.code)) {
    case UNAUTHENTICATED:
      return `Temporal does not know this process (TEMPORAL_API_KEY, TEMPORAL_TLS_…): ${details}`;
    case PERMISSION_DENIED:
      return `Temporal does not allow this process what it asks (TEMPORAL_API_KEY): ${details}`;
    case NOT_FOUND:
      return /namespace/i.test(details) ? `${details} (TEMPORAL_NAMESPACE)` : undefined;
    case INVALID_ARGUMENT:
      return /search attribute/i.test(details)
        ? `Temporal lacks a search attribute (the command \`migrate\` makes them): ${details}`
        : undefined;
    default:
      return undefined;
  }
}

function wordsForTls(error: unknown): string | undefined {
  if (!isGrpcServiceError(error) || Number(error.code) !== UNAVAILABLE) return undefined;
  const { details } = error;
  return TLS_WORDS.test(details)
    ? `Temporal is not reached by TLS as set (TEMPORAL_TLS_…): ${details}`
    : undefined;
}
