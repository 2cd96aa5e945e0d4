import { isGrpcServiceError, ServiceError as TemporalError } from '@temporalio/client';
import { MongoError, MongoNetworkError, MongoServerSelectionError } from 'mongodb';
import { describeError } from '../base/errors';
import { Contention } from '../base/mongo';
import { Refusal, ServiceError } from '../domain/errors';
import { DecryptionError } from '../encryption/encrypter';
import { RedeliveryStopped } from '../service/events/redeliveries';
import { findConfigFault } from '../temporal/deadline';

const MISMATCH =
  'A stored value, such as a signing secret, can not be decrypted with this KEYS_FILE. ' +
  'Use the file that the service runs with.';
const BUSY =
  'Others changed the same records for too long, so this step was not done: run it again.';

export function explain(error: unknown): { code: string; message: string } {
  if (error instanceof ServiceError || error instanceof Refusal) {
    return { code: error.code, message: error.message };
  }
  if (error instanceof RedeliveryStopped) {
    const { code, message } = explain(error.cause);
    const hint = `Sent again before that: ${error.sent}. Go on with --since ${error.position}.`;
    return { code, message: `${message} ${hint}` };
  }
  if (error instanceof DecryptionError) return { code: 'keys_file_mismatch', message: MISMATCH };
  if (error instanceof Contention) return { code: 'busy', message: BUSY };
  if (error instanceof MongoServerSelectionError || error instanceof MongoNetworkError) {
    const message = `MongoDB stopped answering, so the outcome is unknown: ${error.message}`;
    return { code: 'mongodb_unavailable', message };
  }
  if (error instanceof MongoError) {
    return { code: 'mongodb_error', message: `MongoDB refused: ${error.message}` };
  }
  const fault = findConfigFault(error);
  if (fault !== undefined) return { code: 'temporal_refused', message: fault.message };
  const reason = describeError(error);
  return error instanceof TemporalError || isGrpcServiceError(error)
    ? { code: 'temporal_unavailable', message: `Temporal did not do it: ${reason}` }
    : { code: 'internal_error', message: `Unexpected: ${reason}` };
}
