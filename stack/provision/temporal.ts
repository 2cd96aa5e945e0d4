import { join } from 'node:path';
import { z } from 'zod';
import { describeError, OperationalError } from '../../src/base/errors';
import { connectTemporal, type TemporalAccess } from '../../src/temporal/access';
import { registerAttributes } from '../../src/temporal/attributes';

import { findConnectFault } from '../../src/temporal/deadline';
import type { Progress, Task } from '../terminal';
import { needTool, runCommand } from './command';
import { type Archives, fetchArchive, PLATFORM } from './download';
import {
  findInstalled,
  type ProvisionContext,
  provision,
  type Route,
  type Server,
} from './provision';

const VERSION = '1.5.1';
const GO_MODULE = 'github.com/temporalio/cli';
/** Go's checksum database checks the module in any case. */
const GO_SUM = 'h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY=';
const BUILD_MS_MAX = 15 * 60_000;
/** Update-with-start is on by default from here. */
const SERVER_MINOR_MIN = 28;

const CALL_MS_MAX = 5_000;

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

/**
 * Finds the server at TEMPORAL_ADDRESS, on PATH, by the official download, or in the registry of Go.
 * @param remote server at TEMPORAL_ADDRESS
 * @returns undefined for TEMPORAL_ADDRESS
 * @throws OperationalError
 */
export async function findTemporal(
  remote: TemporalAccess | undefined,
  context: ProvisionContext,
): Promise<string | undefined> {
  if (remote === undefined) return (await provision(temporalCli, context)).path;
  await prepareRemoteTemporal(remote, context.progress);
  context.progress.line('Temporal: TEMPORAL_ADDRESS, nothing started');
  return undefined;
}

/**
 * Registers missing search attributes.
 * @throws OperationalError if the server does not answer, or refuses
 */
export async function prepareRemoteTemporal(
  access: TemporalAccess,
  progress: Progress,
): Promise<void> {
  const { address, namespace } = access;
  const client = connectTemporal(access);
  const { connection } = client;
  try {
    await client.withDeadline(Date.now() + CALL_MS_MAX, () =>
      client.workflowService.describeNamespace({ namespace }),
    );
    const attributes = await registerAttributes({ connection, namespace });
    if (attributes.length === 0) return;
    progress.line(
      `Temporal: registered search attributes ${attributes.join(', ')} on ${namespace}`,
    );
  } catch (error) {
    const fault = findConnectFault(error);
    throw new OperationalError(
      fault === undefined
        ? `No Temporal at TEMPORAL_ADDRESS ${address}: ${describeError(error)}`
        : `Temporal at TEMPORAL_ADDRESS ${address}: ${fault.message}`,
    );
  } finally {
    await connection.close();
  }
}

export const temporalCli: Server = {
  name: 'Temporal',
  installed: ({ env }) => findInstalled('temporal', env, readTemporalVersion),
  routes: [officialRoute, goRoute],
  help: [
    'set TEMPORAL_ADDRESS to a Temporal server that runs already (host:port)',
    `install the Temporal CLI ${VERSION} so that \`temporal\` is on PATH (docs.temporal.io/cli)`,
    'install Go 1.21 or later (go.dev/dl): the CLI is then built from source, in about 3 minutes',
  ],
};

/** @returns undefined for a command line or server that is too old, or too new */
export function readTemporalVersion(output: string): string | undefined {
  const cli = /version (\d+)\.\d+\.\d+(-DEV)?/.exec(output);
  const server = /Server (\d+)\.(\d+)/.exec(output);
  if (cli === null || server === null) return undefined;
  const isCliUsable = cli[1] === '1' || cli[2] === '-DEV';
  const isServerUsable = server[1] === '1' && Number(server[2]) >= SERVER_MINOR_MIN;
  return isCliUsable && isServerUsable ? output.trim() : undefined;
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
  const args = ['mod', 'download', '-json', `${GO_MODULE}@v${VERSION}`];
  const { Sum } = ModuleDownload.parse(JSON.parse(await runCommand(go, args, options)));
  if (Sum !== GO_SUM) {
    throw new OperationalError(`${GO_MODULE} v${VERSION} has the hash ${Sum}, not the known one`);
  }
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
