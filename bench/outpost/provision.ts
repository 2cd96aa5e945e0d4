import { existsSync, readdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { describeError, OperationalError } from '../../src/base/errors';
import { cacheDirectory, provision } from '../../stack/provision';
import { PLATFORM } from '../../stack/provision/archives';
import type { CachedServer } from '../../stack/provision/cache';
import { findOnPath } from '../../stack/provision/command';
import { buildWithGo } from '../../stack/provision/go';
import type { ProvisionContext, Server } from '../../stack/provision/provision';
import { installWithApt } from '../servers/apt';
import type { Setting } from '../servers/config';

const VERSION = '1.2.0';
const MODULE = {
  path: 'github.com/hookdeck/outpost',
  version: VERSION,
  commands: ['cmd/outpost-server', 'cmd/outpost'],
};
const SERVER = 'outpost-server';

const outpost: Server = {
  name: 'Outpost',
  installed: async ({ env }) => {
    const path = findOnPath(SERVER, env['PATH']);
    return path === undefined ? undefined : { path, from: 'on PATH' };
  },
  routes: [
    {
      name: `Outpost ${VERSION} built with Go`,
      folder: `outpost-${VERSION}-${PLATFORM}`,
      executable: SERVER,
      megabytes: 4_000,
      fetch: (folder, task, context) => buildWithGo(MODULE, folder, task, context),
    },
  ],
  help: [
    'install Go 1.21 or later (go.dev/dl): Outpost is then built from source',
    `install \`${SERVER}\` and \`outpost\` ${VERSION} in one directory of PATH`,
  ],
};

const POSTGRES = '/usr/lib/postgresql';
/** Directories of Debian's packages that are on nobody's PATH; RabbitMQ's wrapper changes the user. */
const RABBITMQ = '/usr/lib/rabbitmq/bin';

const PROGRAMS = {
  'redis-server': { server: 'Redis', packages: ['redis-server'] },
  'rabbitmq-server': { server: 'RabbitMQ', packages: ['rabbitmq-server'] },
  epmd: { server: 'RabbitMQ', packages: ['erlang-base'] },
  initdb: { server: 'PostgreSQL', packages: ['postgresql'] },
} as const;
type ProgramName = keyof typeof PROGRAMS;

/** Paths of the programs. `migrate` is the command of Outpost that creates its tables. */
export interface Programs {
  outpost: string;
  migrate: string;
  redis: string;
  rabbitmq: string;
  epmd: string;
  initdb: string;
  postgres: string;
}

/**
 * Finds the servers on PATH, or gets them: Outpost by Go, the others by the system's package manager.
 * @throws OperationalError naming the one that can't be had
 */
export async function findPrograms({ env, progress, signal }: Setting): Promise<Programs> {
  const context = { cacheDir: cacheDirectory(env), env, progress, signal };
  const server = await provision(outpost, context);
  const find = async (name: ProgramName) => (await findOrInstall(name, context)).path;
  const initdb = await find('initdb');
  return {
    outpost: server.path,
    migrate: join(dirname(server.path), 'outpost'),
    redis: await find('redis-server'),
    rabbitmq: await find('rabbitmq-server'),
    epmd: await find('epmd'),
    initdb,
    postgres: join(dirname(initdb), 'postgres'),
  };
}

async function findOrInstall(name: ProgramName, context: ProvisionContext): Promise<CachedServer> {
  const { server, packages } = PROGRAMS[name];
  const installed = findOnPath(name, searchPath(context.env));
  if (installed !== undefined) return { path: installed, from: 'installed' };
  await installWithApt(context, server, packages).catch((error) => {
    throw missing(name, describeError(error));
  });
  const path = findOnPath(name, searchPath(context.env));
  if (path === undefined) throw missing(name, `apt-get left no ${name}`);
  context.progress.line(`${server}: installed with apt-get (${path})`);
  return { path, from: 'installed with apt-get' };
}

function searchPath(env: NodeJS.ProcessEnv): string {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : [];
  const postgres = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(POSTGRES, version, 'bin'));
  return [RABBITMQ, env['PATH'] ?? '', ...postgres].join(delimiter);
}

function missing(name: ProgramName, why: string): OperationalError {
  const { server } = PROGRAMS[name];
  return new OperationalError(
    `${server} can't be had: ${why}; install it so that ${name} is on PATH.`,
  );
}
