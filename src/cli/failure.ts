import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';
import { MongoError, MongoNetworkError, MongoServerSelectionError } from 'mongodb';
import { SealError } from '../keys/seal';

/** Failure of a command. Its message is the whole explanation, so no stack is shown. */
export class CliFailure extends Error {
  override readonly name = 'CliFailure';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Explains an error to the person at the terminal. */
export function explain(error: unknown): { code: string; message: string } {
  if (error instanceof CliFailure) return { code: error.code, message: error.message };
  if (error instanceof SealError) {
    const message =
      'A stored value (a signing secret or a recipient) can not be opened with this KEYS_FILE. ' +
      'Use the file that the service runs with.';
    return { code: 'keys_file_mismatch', message };
  }
  if (error instanceof MongoServerSelectionError || error instanceof MongoNetworkError) {
    const message = `MongoDB stopped answering, so the outcome is unknown: ${error.message}`;
    return { code: 'mongodb_unavailable', message };
  }
  if (error instanceof MongoError) {
    return { code: 'mongodb_error', message: `MongoDB refused: ${error.message}` };
  }
  if (isTemporalFault(error)) {
    return { code: 'temporal_unavailable', message: `Temporal did not do it: ${reasonOf(error)}` };
  }
  return { code: 'internal_error', message: `Unexpected: ${reasonOf(error)}` };
}

function isTemporalFault(error: unknown): boolean {
  return (
    error instanceof ServiceError ||
    error instanceof NamespaceNotFoundError ||
    isGrpcServiceError(error)
  );
}

/** Text of an unknown thrown value, with its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && cause.message !== message
    ? `${message}: ${reasonOf(cause)}`
    : message;
}

/** Whether a file was not there; `instanceof` fails under jest, where node's errors are foreign. */
export function isMissingFile(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
}
