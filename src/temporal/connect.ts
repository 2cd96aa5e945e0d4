import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type WorkflowClientInterceptor,
} from '@temporalio/client';
import type { TemporalAccess } from './access';

/** Limits a call to half a second instead of twenty if the server is unavailable. */
const ATTEMPTS_MAX = 3;

/**
 * Connects at the first call, so that a process can start before the server.
 * @param identity caller's name in histories; by default process id and host
 */
export function connectTemporal(
  { namespace, ...access }: TemporalAccess,
  identity?: string,
  interceptors: readonly WorkflowClientInterceptor[] = [],
): Client {
  const retry = makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: ATTEMPTS_MAX }));
  const options: ConnectionOptions = { ...access, interceptors: [retry] };
  const workflow = [...interceptors];
  const client = { connection: Connection.lazy(options), namespace, interceptors: { workflow } };
  return new Client(identity === undefined ? client : { ...client, identity });
}
