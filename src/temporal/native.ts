import { once } from 'node:events';
import { createServer } from 'node:net';
import { IllegalStateError } from '@temporalio/common';
import {
  DefaultLogger,
  NativeConnection,
  Runtime,
  type RuntimeOptions,
  type Worker,
} from '@temporalio/worker';
import { request } from 'undici';
import type { Logger } from '../base/log';
import type { MetricsSource } from '../base/metrics';
import { omitUndefined } from '../domain/defined';
import type { TemporalAccess } from './access';

const LOOPBACK = '127.0.0.1';
const READ_MS_MAX = 2_000;

/** @throws Error when the server is unavailable */
export async function connectNative(access: TemporalAccess): Promise<NativeConnection> {
  const { namespace: _, ...options } = access;
  return await NativeConnection.connect(options);
}

/**
 * Runs a worker until it has stopped. The SDK refuses to release one whose last poll ended a moment
 * ago on another thread; all its work is done then.
 * @throws Error when the worker failed
 */
export async function runWorker(worker: Pick<Worker, 'run' | 'getState'>): Promise<void> {
  try {
    await worker.run();
  } catch (error) {
    const isReleased = error instanceof IllegalStateError && worker.getState() === 'STOPPED';
    if (!isReleased) throw error;
  }
}

/** Runs a worker until `stopped` resolves. @throws Error when the worker failed */
export async function runWorkerUntil(
  worker: Pick<Worker, 'run' | 'getState' | 'shutdown'>,
  stopped: Promise<unknown>,
): Promise<void> {
  const running = runWorker(worker);
  void stopped.then(() => {
    if (worker.getState() === 'RUNNING') worker.shutdown();
  });
  await running;
}

/**
 * Call it once in a worker process, before it connects.
 * @returns the source of the SDK's metrics, if collected
 */
export async function installRuntime(log: Logger, isMetered: boolean): Promise<MetricsSource[]> {
  const logger = new DefaultLogger('WARN', ({ level, message, meta }) => {
    const err = meta?.['error'];
    const fields = omitUndefined({
      workflow_id: meta?.['workflowId'],
      attempt: meta?.['attempt'],
      err: err instanceof Error ? err : undefined,
    });
    if (level === 'ERROR') log.error(fields, message);
    else log.warn(fields, message);
  });
  const options: RuntimeOptions = { shutdownSignals: [], logger };
  if (!isMetered) {
    Runtime.install(options);
    return [];
  }
  const bindAddress = `${LOOPBACK}:${await findFreePort()}`;
  const prometheus = { bindAddress, countersTotalSuffix: true, unitSuffix: true };
  const metrics = { prometheus: { ...prometheus, useSecondsForDurations: true } };
  Runtime.install({ ...options, telemetryOptions: { metrics } });
  const metricsUrl = `http://${bindAddress}/metrics`;
  // Other metrics must not depend on the SDK's.
  const read = async () => (await request(metricsUrl, { headersTimeout: READ_MS_MAX })).body.text();
  return [() => read().catch(() => '')];
}

/** The SDK does not return the port that it uses. */
async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, LOOPBACK);
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No port is free.');
  return address.port;
}
