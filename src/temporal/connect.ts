import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';
import type { TemporalAccess } from './access';

/** Attempts of a call: it fails in half a second when the server is away, not in twenty. */
const ATTEMPTS_MAX = 3;

/**
 * Connects when first used, so that a process can start before the server does.
 * @param identity name of the caller in histories; process and host when not given
 */
export function connectTemporal(
  { namespace, ...access }: TemporalAccess,
  identity?: string,
): Client {
  const retry = makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: ATTEMPTS_MAX }));
  const options: ConnectionOptions = { ...access, interceptors: [retry] };
  const client = { connection: Connection.lazy(options), namespace };
  return new Client(identity === undefined ? client : { ...client, identity });
}
