import { join } from 'node:path';
import { z } from 'zod';
import { OperationalError } from '../../src/base/errors';
import { fetchArchive, PLATFORM, TEMPORAL_ARCHIVES } from './archives';
import type { CachedServer } from './cache';
import { findOnPath, needTool, runCommand } from './command';
import type { ProvisionContext, Route, Server } from './provision';

const VERSION = '1.5.1';
const GO_MODULE = 'github.com/temporalio/cli';
/** Hash of the module in Go's checksum database. */
const GO_MODULE_SUM = 'h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY=';
/** Minimum minor version of the server: from it on, update-with-start is on by default. */
const SERVER_MINOR_MIN = 28;

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
  async fetch(folder, task, { env, signal }) {
    const go = needTool('go');
    const options = {
      cwd: folder,
      signal,
      timeoutMs: 15 * 60_000,
      // The developer's own GOFLAGS (such as -mod=vendor) and workspace must not affect this
      // build.
      env: {
        ...env,
        ...GO_CHECKED,
        GOPROXY: await readProxy(go),
        GOBIN: folder,
        GOFLAGS: '-modcacherw',
        GOWORK: 'off',
      },
    };
    task.say('building with Go, about 3 minutes');
    await checkModuleSum(go, options);
    const module = `${GO_MODULE}/cmd/temporal@v${VERSION}`;
    await runCommand(go, ['install', '-ldflags', '-s -w', module], options);
  },
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

/** Whether `temporal --version` describes a CLI 1.x (or a build from source) that we can use. */
export function isUsableTemporal(output: string): boolean {
  const cli = /version (\d+)\.\d+\.\d+(-DEV)?/.exec(output);
  const server = /Server (\d+)\.(\d+)/.exec(output);
  if (cli === null || server === null) return false;
  const isCliUsable = cli[1] === '1' || cli[2] === '-DEV';
  return isCliUsable && server[1] === '1' && Number(server[2]) >= SERVER_MINOR_MIN;
}

/** The checksum database checks every module, whatever the developer's environment says. */
const GO_CHECKED = {
  // The user's own file of settings could override what is empty here.
  GOENV: 'off',
  GOTOOLCHAIN: 'auto',
  GOSUMDB: 'sum.golang.org',
  GONOSUMDB: '',
  GOPRIVATE: '',
  GOINSECURE: '',
};

/** Reads the proxy from the user's settings, too: what it serves is verified. */
async function readProxy(go: string): Promise<string> {
  return (await runCommand(go, ['env', 'GOPROXY'], { timeoutMs: 10_000 })).trim();
}

const ModuleDownload = z.object({ Sum: z.string() });

async function checkModuleSum(
  go: string,
  options: Parameters<typeof runCommand>[2],
): Promise<void> {
  const args = ['mod', 'download', '-json', `${GO_MODULE}@v${VERSION}`];
  const answer = ModuleDownload.parse(JSON.parse(await runCommand(go, args, options)));
  if (answer.Sum === GO_MODULE_SUM) return;
  throw new OperationalError(
    `${GO_MODULE} v${VERSION} has the hash ${answer.Sum}, not the known one`,
  );
}
