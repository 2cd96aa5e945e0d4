import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { keysFile } from '../src/keys/file';
import { connectMongo } from '../src/mongo';
import type { StackConfig } from '../stack/config';
import { childEnvironment, type StackPart, stackParts } from '../stack/parts';
import { freePort, LOOPBACK } from '../stack/ports';
import { waitUntilReady } from '../stack/readiness';
import { floorParts, floorSettings } from './floor-parts';
import { createProcesses, type Part } from './processes';
import { benchConfig, findServers, type Setting } from './servers';

const READY_MS_MAX = 60_000;
/** Rate limit of the API, far above any rate that is measured. */
const RATE_PER_SECOND = '100000';

/** The servers, the product's three processes and the floor's, all running. */
export interface Stack {
  config: StackConfig;
  /** Environment of the product's processes and of the command line. */
  env: NodeJS.ProcessEnv;
  mongodbUri: string;
  temporalAddress: string;
  floorDb: string;
  floorUrl: string;
  /** Process ids by name, of what this run started and of itself; kept current. */
  pids: Readonly<Record<string, number>>;
  /** Rejects when a process ends before `stop`. */
  died: Promise<never>;
  /** Ends the workers and starts them anew, so that they remember no workflow. */
  restartWorkers(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts everything, each part with the code that `npm start` has for it.
 * @param floorReceiverUrl address to which the floor posts; without it there is no floor
 * @param limits limits of the API in the place of ones that nothing reaches
 * @throws StackFailure when a part does not come up; nothing is left running then.
 */
export async function startStack(
  setting: Setting,
  floorReceiverUrl?: string,
  limits: NodeJS.ProcessEnv = {},
): Promise<Stack> {
  const { progress, signal } = setting;
  const config = await benchConfig(setting);
  mkdirSync(join(config.dataDir, 'logs'), { recursive: true });
  const executables = await findServers(config, setting);
  const env = childEnvironment(config, keysFile(config.dataDir), {
    ...setting.env,
    RATE_LIMIT_PER_SECOND: RATE_PER_SECOND,
    ACCOUNT_LIMIT_PER_SECOND: RATE_PER_SECOND,
    SANDBOX_CREATE_LIMIT_PER_SECOND: RATE_PER_SECOND,
    CREATES_AT_ONCE: RATE_PER_SECOND,
    ...limits,
  });
  const { MONGODB_URI: mongodbUri = '', TEMPORAL_ADDRESS: temporalAddress = '' } = env;
  const floorPort = await freePort();
  const floorDb = `${config.mongodbDb}_floor`;
  const floor =
    floorReceiverUrl === undefined
      ? []
      : floorParts(config, {
          ...env,
          ...floorSettings({ port: floorPort, db: floorDb, receiverUrl: floorReceiverUrl }),
        });
  const stages: Part[][] = stackParts(config, executables, env).map(partsOf);
  const processes = createProcesses(config, signal);
  const probes = [
    { name: 'api', url: `http://${LOOPBACK}:${config.port}/readyz` },
    { name: 'sandbox bank', url: `http://${LOOPBACK}:${config.sandboxBankPort}/healthz` },
    ...(floor.length === 0 ? [] : [{ name: 'floor', url: `http://${LOOPBACK}:${floorPort}/` }]),
  ];
  const untilReady = (what: string) =>
    progress.during(what, async (task) => {
      const ready = waitUntilReady(probes, READY_MS_MAX, task, signal);
      await Promise.race([ready, processes.died]);
    });
  try {
    for (const stage of [...stages, floor]) {
      const names = stage.map(({ name }) => name).join(', ');
      if (names !== '') await progress.during(`Starting ${names}`, () => processes.start(stage));
    }
    await untilReady('Waiting until all are ready');
  } catch (error) {
    await processes.stop();
    throw error;
  }
  return {
    config,
    env,
    mongodbUri,
    temporalAddress,
    floorDb,
    floorUrl: `http://${LOOPBACK}:${floorPort}`,
    pids: processes.pids,
    died: processes.died,
    restartWorkers: async () => {
      await processes.restart(({ name }) => name === 'worker' || name === 'floor_worker');
      await untilReady('Starting the workers anew');
    },
    stop: processes.stop,
  };
}

/** Leaves nothing behind on a server that goes on running. */
export async function dropDatabases({ mongodbUri, config, floorDb }: Stack): Promise<void> {
  if (config.mongodbUri === undefined) return;
  const mongo = await connectMongo(mongodbUri, 'bench');
  try {
    for (const name of [config.mongodbDb, `${config.mongodbDb}_sandbox_bank`, floorDb]) {
      await mongo.db(name).dropDatabase();
    }
  } finally {
    await mongo.close();
  }
}

function partsOf(stage: readonly StackPart[]): Part[] {
  return stage.map(({ name, start }) => ({ name, start }));
}
