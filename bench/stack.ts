import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { keysFile } from '../src/keys/file';
import { StackFailure } from '../src/os/failure';
import { type Child, startChild } from '../stack/child-process';
import type { StackConfig } from '../stack/config';
import { lastLines } from '../stack/log-file';
import { childEnvironment, stackParts } from '../stack/parts';
import { freePort, LOOPBACK } from '../stack/ports';
import { waitUntilReady } from '../stack/readiness';
import { benchConfig, findServers, type Setting } from './servers';

const READY_MS_MAX = 60_000;
const FLOOR_GRACE_MS = 4_000;
/** Rate limit of the API, far above any rate that is measured. */
const RATE_PER_SECOND = '100000';

/** The servers, the product's three processes and the floor's two, all running. */
export interface Stack {
  config: StackConfig;
  /** Environment of the product's processes and of the command line. */
  env: NodeJS.ProcessEnv;
  mongodbUri: string;
  temporalAddress: string;
  floorDb: string;
  floorUrl: string;
  /** Process ids by name, of what this run started. */
  pids: Record<string, number>;
  /** Rejects when a process ends before `stop`. */
  died: Promise<never>;
  stop(): Promise<void>;
}

/**
 * Starts everything, each part with the code that `npm start` has for it.
 * @throws StackFailure when a part does not come up; nothing is left running then.
 */
export async function startStack(setting: Setting, floorReceiverUrl: string): Promise<Stack> {
  const { progress, signal } = setting;
  const config = await benchConfig(setting);
  mkdirSync(join(config.dataDir, 'logs'), { recursive: true });
  const executables = await findServers(config, setting);
  const keys = keysFile(config.dataDir);
  const env = childEnvironment(config, keys, {
    ...setting.env,
    RATE_LIMIT_PER_SECOND: RATE_PER_SECOND,
    ACCOUNT_LIMIT_PER_SECOND: RATE_PER_SECOND,
    SANDBOX_CREATE_LIMIT_PER_SECOND: RATE_PER_SECOND,
  });
  const { MONGODB_URI: mongodbUri = '', TEMPORAL_ADDRESS: temporalAddress = '' } = env;
  const floorPort = await freePort();
  const floorDb = `${config.mongodbDb}_floor`;
  const floorEnv = {
    ...env,
    FLOOR_PORT: String(floorPort),
    FLOOR_DB: floorDb,
    FLOOR_RECEIVER_URL: floorReceiverUrl,
  };
  const children: Child[] = [];
  const guard = watchOver(children, (name) => logOf(config, name));
  const start = async (starting: Promise<Child>): Promise<void> => {
    const child = await starting;
    children.push(child);
    guard.watch(child);
  };
  try {
    await progress.during('Starting', async (task) => {
      for (const stage of stackParts(config, executables, env)) {
        task.say(stage.map(({ name }) => name).join(' and '));
        await allOf(stage.map((part) => start(part.start(signal))));
      }
      await start(startFloor(config, 'worker', floorEnv));
      await start(startFloor(config, 'front', floorEnv));
      const ready = waitUntilReady(probesOf(config, floorPort), READY_MS_MAX, task, signal);
      await Promise.race([ready, guard.died]);
    });
  } catch (error) {
    await guard.stop();
    throw error;
  }
  return {
    config,
    env,
    mongodbUri,
    temporalAddress,
    floorDb,
    floorUrl: `http://${LOOPBACK}:${floorPort}`,
    pids: Object.fromEntries(children.map(({ name, pid }) => [name, pid])),
    died: guard.died,
    stop: guard.stop,
  };
}

/**
 * Waits for all, also when one fails, since a process that comes up late must not be left running.
 */
async function allOf(starts: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(starts)) {
    if (result.status === 'rejected') throw result.reason;
  }
}

function startFloor(
  config: StackConfig,
  what: 'worker' | 'front',
  env: NodeJS.ProcessEnv,
): Promise<Child> {
  const name = `floor_${what}`;
  return startChild({
    name,
    command: process.execPath,
    args: [join(__dirname, 'floor', `${what}.js`)],
    env,
    logFile: logOf(config, name),
    ipc: true,
    graceMs: FLOOR_GRACE_MS,
  });
}

function logOf(config: StackConfig, name: string): string {
  return join(config.dataDir, 'logs', `${name.toLowerCase()}.log`);
}

function probesOf(config: StackConfig, floorPort: number) {
  return [
    { name: 'api', url: `http://${LOOPBACK}:${config.port}/readyz` },
    { name: 'sandbox bank', url: `http://${LOOPBACK}:${config.sandboxBankPort}/healthz` },
    { name: 'floor', url: `http://${LOOPBACK}:${floorPort}/` },
  ];
}

/**
 * Watches the processes and starts none again, since figures of a run in which one died mean
 * nothing.
 */
function watchOver(children: readonly Child[], log: (name: string) => string) {
  let stopping = false;
  let giveUp: (failure: StackFailure) => void = () => {};
  const died = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  died.catch(() => {});
  return {
    died,
    watch: ({ name, exited }: Child): void => {
      void exited.then((how) => {
        if (stopping) return;
        giveUp(new StackFailure(`${name} ${how}. The end of its log:\n${lastLines(log(name))}`));
      });
    },
    /** Stops the servers last, as they serve the others. */
    stop: async (): Promise<void> => {
      stopping = true;
      const servers = children.filter(({ name }) => name === 'MongoDB' || name === 'Temporal');
      const others = children.filter((child) => !servers.includes(child));
      await Promise.all(others.map((child) => child.stop()));
      await Promise.all(servers.map((child) => child.stop()));
    },
  };
}
