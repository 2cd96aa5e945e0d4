import { join } from 'node:path';
import { z } from 'zod';
import { OperationalError } from '../../src/base/errors';
import type { Task } from '../terminal';
import { type CommandOptions, findOnPath, needTool, runCommand } from './command';
import { type Archives, fetchArchive, PLATFORM } from './download';
import type { CachedServer, ProvisionContext, Route, Server } from './provision';

const VERSION = '1.5.1';
const GO_MODULE = 'github.com/temporalio/cli';
/** Go's checksum database checks the module in any case. */
const GO_SUM = 'h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY=';
const BUILD_MS_MAX = 15 * 60_000;
/** Update-with-start is on by default from here. */
const SERVER_MINOR_MIN = 28;

const TEMPORAL = 'https://github.com/temporalio/cli/releases/download/v1.5.1/temporal_cli_1.5.1_';

export const TEMPORAL_ARCHIVES: Archives = {
  'linux-x64': {
    url: `${TEMPORAL}linux_amd64.tar.gz`,
    sha256: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  },
  'linux-arm64': {
    url: `${TEMPORAL}linux_arm64.tar.gz`,
    sha256: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  },
  'darwin-x64': {
    url: `${TEMPORAL}darwin_amd64.tar.gz`,
    sha256: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  },
  'darwin-arm64': {
    url: `${TEMPORAL}darwin_arm64.tar.gz`,
    sha256: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
  },
};

const officialRoute: Route = {
  name: `the official download of Temporal CLI ${VERSION}`,
  folder: `temporal-cli-${VERSION}-${PLATFORM}`,
  executable: 'temporal',
  megabytes: 600,
  async fetch(folder, task, { signal }) {
    await fetchArchive(TEMPORAL_ARCHIVES, folder, task, signal);
    await runCommand(join(folder, 'temporal'), ['--version'], { timeoutMs: 10_000, signal });
  },
};

const goRoute: Route = {
  name: `Temporal CLI ${VERSION} built with Go`,
  folder: `temporal-${VERSION}-${PLATFORM}`,
  executable: 'temporal',
  megabytes: 4_000,
  fetch: buildWithGo,
};

export const temporalCli: Server = {
  name: 'Temporal',
  installed: temporalOnPath,
  routes: [officialRoute, goRoute],
  help: [
    'set TEMPORAL_ADDRESS to a Temporal server that runs already (host:port)',
    `install the Temporal CLI ${VERSION} so that \`temporal\` is on PATH (docs.temporal.io/cli)`,
    'install Go 1.21 or later (go.dev/dl): the CLI is then built from source, in about 3 minutes',
  ],
};

async function temporalOnPath({ env }: ProvisionContext): Promise<CachedServer | undefined> {
  const path = findOnPath('temporal', env['PATH']);
  if (path === undefined) return undefined;
  const output = await runCommand(path, ['--version'], { timeoutMs: 10_000 }).catch(() => '');
  return isUsableTemporal(output) ? { path, from: `on PATH, ${output.trim()}` } : undefined;
}

export function isUsableTemporal(output: string): boolean {
  const cli = /version (\d+)\.\d+\.\d+(-DEV)?/.exec(output);
  const server = /Server (\d+)\.(\d+)/.exec(output);
  if (cli === null || server === null) return false;
  const isCliUsable = cli[1] === '1' || cli[2] === '-DEV';
  return isCliUsable && server[1] === '1' && Number(server[2]) >= SERVER_MINOR_MIN;
}

/** @throws OperationalError */
async function buildWithGo(
  folder: string,
  task: Task,
  { env, signal }: ProvisionContext,
): Promise<void> {
  const go = needTool('go');
  const options = {
    cwd: folder,
    signal,
    timeoutMs: BUILD_MS_MAX,
    // The developer's own GOFLAGS and workspace must not affect this build.
    env: {
      ...env,
      ...GO_CHECKED,
      GOPROXY: (await runCommand(go, ['env', 'GOPROXY'], { timeoutMs: 10_000 })).trim(),
      GOBIN: folder,
      GOFLAGS: '-modcacherw',
      GOWORK: 'off',
    },
  };
  task.say('building with Go, about 3 minutes');
  await checkModuleSum(go, options);
  const command = `${GO_MODULE}/cmd/temporal@v${VERSION}`;
  await runCommand(go, ['install', '-ldflags', '-s -w', command], options);
}

const GO_CHECKED = {
  // The user's settings file could override what is empty here.
  GOENV: 'off',
  GOTOOLCHAIN: 'auto',
  GOSUMDB: 'sum.golang.org',
  GONOSUMDB: '',
  GOPRIVATE: '',
  GOINSECURE: '',
};

const ModuleDownload = z.object({ Sum: z.string() });

async function checkModuleSum(go: string, options: CommandOptions): Promise<void> {
  const args = ['mod', 'download', '-json', `${GO_MODULE}@v${VERSION}`];
  const answer = ModuleDownload.parse(JSON.parse(await runCommand(go, args, options)));
  if (answer.Sum === GO_SUM) return;
  throw new OperationalError(
    `${GO_MODULE} v${VERSION} has the hash ${answer.Sum}, not the known one`,
  );
}
