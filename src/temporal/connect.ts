import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type WorkflowClientInterceptor,
} from '@temporalio/client';
import type { TemporalAccess } from './access';

/** Attempts of a call: it fails in half a second when the server is away, not in twenty. */
const ATTEMPTS_MAX = 3;

/**
 * Connects when first used, so that a process can start before the server does.
 * @param identity name of the caller in histories; process and host when not given
 * @param interceptors lookers-on at its calls, such as traces
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
