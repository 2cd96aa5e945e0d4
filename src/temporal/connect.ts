import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';

/** Attempts of a call: it fails in half a second when the server is away, not in twenty. */
const ATTEMPTS_MAX = 3;

export interface TemporalAddress {
  address: string;
  namespace: string;
}

/** Connects when first used, so that a process can start before the server does. */
export function connectTemporal({ address, namespace }: TemporalAddress): Client {
  const retry = makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: ATTEMPTS_MAX }));
  const connection = Connection.lazy({ address, interceptors: [retry] });
  return new Client({ connection, namespace });
}
