import { join } from 'node:path';
import { fetchArchive, PLATFORM, TEMPORAL_ARCHIVES } from './archives';
import type { CachedServer } from './cache';
import { findOnPath, runCommand } from './command';
import { buildWithGo } from './go';
import type { ProvisionContext, Route, Server } from './provision';

const VERSION = '1.5.1';
const GO_MODULE = {
  path: 'github.com/temporalio/cli',
  version: VERSION,
  sum: 'h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY=',
  commands: ['cmd/temporal'],
};
/** Update-with-start is on by default from here. */
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
  fetch: (folder, task, context) => buildWithGo(GO_MODULE, folder, task, context),
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
