import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { Db, MongoClient } from 'mongodb';
import { connectMongo } from '../../src/base/mongo';
import { ensureKeys } from '../../src/encryption/ensure-keys';
import { connectTemporal, temporalAccess } from '../../src/temporal/access';
import { type Probe, waitUntilReady } from '../../stack/child-process';
import type { StackConfig } from '../../stack/config';
import { childEnvironment, findServers, stackParts } from '../../stack/parts';
import { freePort, LOOPBACK } from '../../stack/ports';
import { floorParts } from '../floor/parts';
import type { Pids } from '../measure/process';
import { buildConfig, type Setting } from './config';
import { createProcesses, type Part } from './processes';

const READY_MS_MAX = 60_000;
/** Rate limit of the API, far above any rate that is measured. */
const UNLIMITED = '100000';
const WITHOUT_LIMITS = {
  RATE_LIMIT_PER_SECOND: UNLIMITED,
  ACCOUNT_LIMIT_PER_SECOND: UNLIMITED,
  SANDBOX_CREATE_LIMIT_PER_SECOND: UNLIMITED,
};

interface StackOptions {
  /** `servers`: Temporal and MongoDB alone; `product`: all its processes; `floor`: both subjects. */
  parts: 'servers' | 'product' | 'floor';
  receiverUrl?: string;
  /** Keeps the limits that the product has. */
  limited?: true;
}

export interface Stack {
  config: StackConfig;
  env: NodeJS.ProcessEnv;
  url: string;
  floorUrl: string;
  pids: Pids;
  mongo: MongoClient;
  db: Db;
  temporal: Client;
}

/**
 * Runs `work` with a new stack, of which nothing is left afterwards.
 * @throws OperationalError when a part does not start, or ends before `work`
 */
export async function withStack<T>(
  setting: Setting,
  options: StackOptions,
  work: (stack: Stack) => Promise<T>,
): Promise<T> {
  const config = await buildConfig(setting);
  mkdirSync(join(config.dataDir, 'logs'), { recursive: true });
  const env = childEnvironment(config, ensureKeys(config.dataDir), {
    ...setting.env,
    SANDBOX_CONNECTORS: '',
    ...(options.limited ? {} : WITHOUT_LIMITS),
  });
  const floor = { port: await freePort(), db: `${config.mongodbDb}_floor` };
  const stages: Part[][] = stackParts(config, await findServers(config, setting), env).map(
    (stage) => stage.map(({ name, start }) => ({ name, start })),
  );
  const url = `http://${LOOPBACK}:${config.port}`;
  const floorUrl = `http://${LOOPBACK}:${floor.port}`;
  const probes = [
    { name: 'api', url: `${url}/readyz` },
    { name: 'sandbox bank', url: `http://${LOOPBACK}:${config.sandboxBankPort}/healthz` },
  ];
  if (options.parts === 'servers') {
    stages.splice(1);
    probes.length = 0;
  }
  if (options.parts === 'floor') {
    stages.push(floorParts(config, { ...floor, receiverUrl: options.receiverUrl ?? '' }, env));
    probes.push({ name: 'floor', url: floorUrl });
  }
  const processes = createProcesses(config, setting.signal);
  const { died, pids } = processes;
  try {
    await startParts({ stages, probes }, processes, setting);
    const stack = { config, env, url, floorUrl, pids };
    return await withClients(stack, (clients) =>
      Promise.race([work({ ...stack, ...clients }), died, setting.broken]),
    );
  } finally {
    await setting.progress.during('Stopping', () => processes.stop());
    await dropDatabases(config, floor.db);
  }
}

async function startParts(
  { stages, probes }: { stages: readonly Part[][]; probes: readonly Probe[] },
  { start, died }: Pick<ReturnType<typeof createProcesses>, 'start' | 'died'>,
  { progress, signal }: Setting,
): Promise<void> {
  for (const stage of stages.filter(({ length }) => length > 0)) {
    const names = stage.map(({ name }) => name).join(', ');
    await progress.during(`Starting ${names}`, () => start(stage));
  }
  await progress.during('Waiting until all are ready', async (task) => {
    await Promise.race([waitUntilReady(probes, READY_MS_MAX, task, signal), died]);
  });
}

async function withClients<T>(
  { env, config }: Pick<Stack, 'env' | 'config'>,
  work: (clients: Pick<Stack, 'mongo' | 'db' | 'temporal'>) => Promise<T>,
): Promise<T> {
  const mongo = await connectMongo(env['MONGODB_URI'] ?? '', 'bench');
  const temporal = connectTemporal(temporalAccess(env));
  try {
    return await work({ mongo, db: mongo.db(config.mongodbDb), temporal });
  } finally {
    await Promise.all([temporal.connection.close(), mongo.close()]);
  }
}

async function dropDatabases(config: StackConfig, floorDb: string): Promise<void> {
  if (config.mongodbUri === undefined) return;
  const mongo = await connectMongo(config.mongodbUri, 'bench');
  try {
    const { mongodbDb: own } = config;
    for (const name of [own, `${own}_sandbox_bank`, `${own}_sepa`, floorDb]) {
      await mongo.db(name).dropDatabase();
    }
  } finally {
    await mongo.close();
  }
}
