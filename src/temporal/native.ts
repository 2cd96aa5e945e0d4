import { once } from 'node:events';
import { createServer } from 'node:net';
import { NativeConnection, Runtime, type RuntimeOptions } from '@temporalio/worker';
import { request } from 'undici';
import type { Logger } from '../log';
import type { MetricsSource } from '../metrics/page';
import type { TemporalAccess } from './access';
import { temporalLogger } from './log';

const LOOPBACK = '127.0.0.1';
const READ_MS_MAX = 2_000;

/** Connects a worker. @throws Error when the server does not answer. */
export async function connectNative({
  namespace: _,
  ...access
}: TemporalAccess): Promise<NativeConnection> {
  return await NativeConnection.connect(access);
}

/**
 * Prepares the SDK's core, once in a process that has a worker and before it connects.
 * @param metered whether the SDK counts, for the process's figures
 * @returns the SDK's figures; none where it does not count
 */
export async function installRuntime(log: Logger, metered: boolean): Promise<MetricsSource[]> {
  const options: RuntimeOptions = { shutdownSignals: [], logger: temporalLogger(log) };
  if (!metered) {
    Runtime.install(options);
    return [];
  }
  const bindAddress = `${LOOPBACK}:${await freePort()}`;
  const prometheus = { bindAddress, countersTotalSuffix: true, unitSuffix: true };
  const metrics = { prometheus: { ...prometheus, useSecondsForDurations: true } };
  Runtime.install({ ...options, telemetryOptions: { metrics } });
  const page = `http://${bindAddress}/metrics`;
  // The process's own figures are told also where the SDK's are not.
  const read = async () => (await request(page, { headersTimeout: READ_MS_MAX })).body.text();
  return [() => read().catch(() => '')];
}

/** Finds a port that nothing listens on; the SDK's core can't say which one it was given. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, LOOPBACK);
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No port is free.');
  return address.port;
}
