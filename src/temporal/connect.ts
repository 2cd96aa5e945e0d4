import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';

/** Fails in about half a second when the server is away; the default takes twenty. */
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
