import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, startChild, waitUntilUp } from '../../stack/child-process';
import { LOOPBACK } from '../../stack/ports';
import { runCommand } from '../../stack/provision/command';
import type { Part } from '../servers/processes';
import type { Programs } from './provision';
import {
  epmdArguments,
  initdbArguments,
  outpostConfig,
  type Ports,
  postgresArguments,
  RABBITMQ_CONFIG,
  rabbitmqEnvironment,
  redisArguments,
  type Secrets,
} from './settings';

const UP_MS_MAX = 60_000;
/** Maximum wait for a stop: an Outpost whose workers have failed does not end by itself. */
const STOP_MS_MAX = 10_000;
const COMMAND_MS_MAX = 60_000;
/** User that owns nothing: PostgreSQL does not run as root. */
const NOBODY = 65_534;

export interface OutpostSetting {
  programs: Programs;
  ports: Ports;
  secrets: Secrets;
  dir: string;
  env: NodeJS.ProcessEnv;
}

/** Builds the parts in the order of their start; each stores its files in a folder of its own. */
export function outpostParts(setting: OutpostSetting): Part[][] {
  const { programs, ports, dir } = setting;
  const port = (n: number) => () => answers(n);
  const redis: Server = {
    name: 'Redis',
    command: programs.redis,
    args: redisArguments(ports.redis, makeFolder(dir, 'redis')),
    probe: port(ports.redis),
  };
  const epmd: Server = {
    name: 'epmd',
    command: programs.epmd,
    args: epmdArguments(ports.epmd),
    probe: port(ports.epmd),
  };
  const rabbitmqDir = makeFolder(dir, 'rabbitmq');
  writeFileSync(join(rabbitmqDir, 'rabbitmq.conf'), RABBITMQ_CONFIG);
  const rabbitmq: Server = {
    name: 'RabbitMQ',
    command: programs.rabbitmq,
    args: [],
    env: rabbitmqEnvironment(ports, rabbitmqDir, setting.env['PATH']),
    probe: port(ports.rabbitmq),
  };
  const stages = [[redis, epmd, describePostgres(setting)], [rabbitmq], [describeOutpost(setting)]];
  return stages.map((stage) => stage.map((server) => toPart(server, setting)));
}

interface Server {
  name: string;
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** Prepares its files, once. */
  prepare?: () => Promise<unknown>;
  /** Resolves once it answers. */
  probe: () => Promise<unknown>;
}

function toPart({ name, command, args, env, prepare, probe }: Server, setting: OutpostSetting) {
  const logFile = join(setting.dir, 'logs', `${name.toLowerCase()}.log`);
  // The benchmark's own variables would change what these programs do.
  const bare = { PATH: setting.env['PATH'] };
  let prepared: Promise<unknown> | undefined;
  const start = async (signal: AbortSignal): Promise<Child> => {
    prepared ??= prepare?.();
    await prepared;
    const options = { name, command, args, env: env ?? bare, logFile, graceMs: STOP_MS_MAX };
    const child = await startChild(options);
    try {
      await waitUntilUp(child, logFile, UP_MS_MAX, probe, signal);
    } catch (error) {
      await child.stop();
      throw error;
    }
    return child;
  };
  return { name, start };
}

function describePostgres({ programs, ports, dir, env }: OutpostSetting): Server {
  const folder = makeFolder(dir, 'postgres');
  const [initdb, ...initdbArgs] = asNobody(programs.initdb, initdbArguments(folder));
  const [command, ...args] = asNobody(programs.postgres, postgresArguments(ports.postgres, folder));
  return {
    name: 'PostgreSQL',
    command,
    args,
    prepare: async () => {
      // Its user may pass through the folders above, and read none.
      for (const above of isRoot() ? [join(dir, '..'), dir] : []) chmodSync(above, 0o711);
      if (isRoot()) chownSync(folder, NOBODY, NOBODY);
      await runCommand(initdb, initdbArgs, {
        cwd: folder,
        env: { PATH: env['PATH'] },
        timeoutMs: COMMAND_MS_MAX,
      });
    },
    probe: () => answers(ports.postgres),
  };
}

function describeOutpost({ programs, ports, secrets, dir, env }: OutpostSetting): Server {
  const config = join(makeFolder(dir, 'outpost'), 'outpost.yaml');
  writeFileSync(config, outpostConfig(ports, secrets), { mode: 0o600 });
  return {
    name: 'Outpost',
    command: programs.outpost,
    args: ['--config', config],
    prepare: () => migrate(programs.migrate, config, env),
    probe: () => isHealthy(ports.api),
  };
}

/** Prepares both databases, once PostgreSQL accepts work. */
async function migrate(program: string, config: string, env: NodeJS.ProcessEnv): Promise<void> {
  const args = ['migrate', '--config', config, 'apply', '--yes'];
  const options = { timeoutMs: COMMAND_MS_MAX, env: { PATH: env['PATH'] } };
  const run = () => runCommand(program, args, options);
  await run().catch(async () => {
    await sleep(2_000);
    await run();
  });
}

/** @throws while Outpost does not answer, or one of its workers has failed */
export async function isHealthy(port: number): Promise<void> {
  const url = `http://${LOOPBACK}:${port}/api/v1/healthz`;
  const { status } = await fetch(url, { signal: AbortSignal.timeout(STOP_MS_MAX) });
  if (status !== 200) throw new Error(`it answers ${status}`);
}

/** @throws while nothing accepts a connection */
function answers(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: LOOPBACK, port }, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}

function makeFolder(dir: string, name: string): string {
  const folder = join(dir, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Drops root's rights, where this process has them. */
function asNobody(program: string, args: readonly string[]): [string, ...string[]] {
  if (!isRoot()) return [program, ...args];
  const user = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
  return ['setpriv', ...user, program, ...args];
}
