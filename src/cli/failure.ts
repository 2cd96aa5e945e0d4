import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import { MongoError, MongoNetworkError, MongoServerSelectionError } from 'mongodb';
import { ActFailure } from '../domain/act-failure';
import { SealError } from '../keys/seal';
import { Contention } from '../mongo';
import { configFaultOf } from '../temporal/fault';
import { reasonOf } from '../temporal/in-time';

/** Failure of a command. Its message is the whole explanation, so no stack is shown. */
export class CliFailure extends ActFailure {
  override readonly name = 'CliFailure';
}

/** Explains an error to the person at the terminal. */
export function explain(error: unknown): { code: string; message: string } {
  if (error instanceof ActFailure) return { code: error.code, message: error.message };
  if (error instanceof SealError) {
    const message =
      'A stored value (a signing secret or a recipient) can not be opened with this KEYS_FILE. ' +
      'Use the file that the service runs with.';
    return { code: 'keys_file_mismatch', message };
  }
  if (error instanceof Contention) {
    const message =
      'Others changed the same records for too long, so this step was not done: run it again.';
    return { code: 'busy', message };
  }
  if (error instanceof MongoServerSelectionError || error instanceof MongoNetworkError) {
    const message = `MongoDB stopped answering, so the outcome is unknown: ${error.message}`;
    return { code: 'mongodb_unavailable', message };
  }
  if (error instanceof MongoError) {
    return { code: 'mongodb_error', message: `MongoDB refused: ${error.message}` };
  }
  const fault = configFaultOf(error);
  if (fault !== undefined) return { code: 'temporal_refused', message: fault.message };
  if (isTemporalFault(error)) {
    return { code: 'temporal_unavailable', message: `Temporal did not do it: ${reasonOf(error)}` };
  }
  return { code: 'internal_error', message: `Unexpected: ${reasonOf(error)}` };
}

function isTemporalFault(error: unknown): boolean {
  return error instanceof ServiceError || isGrpcServiceError(error);
}

/** Whether a file was not there; `instanceof` fails under jest, where node's errors are foreign. */
export function isMissingFile(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
}
