import { z } from 'zod';
import { OperationalError } from '../../src/base/errors';
import type { Task } from '../terminal';
import { type CommandOptions, needTool, runCommand } from './command';
import type { ProvisionContext } from './provision';

const BUILD_MS_MAX = 15 * 60_000;

export interface GoModule {
  path: string;
  version: string;
  /** Go's checksum database checks the module in any case. */
  sum?: string;
  commands: readonly string[];
}

/** @throws OperationalError */
export async function buildWithGo(
  { path, version, sum, commands }: GoModule,
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
      GOPROXY: await readProxy(go),
      GOBIN: folder,
      GOFLAGS: '-modcacherw',
      GOWORK: 'off',
    },
  };
  task.say('building with Go, about 3 minutes');
  if (sum !== undefined) await checkModuleSum(go, { path, version, sum }, options);
  const packages = commands.map((command) => `${path}/${command}@v${version}`);
  await runCommand(go, ['install', '-ldflags', '-s -w', ...packages], options);
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

async function readProxy(go: string): Promise<string> {
  return (await runCommand(go, ['env', 'GOPROXY'], { timeoutMs: 10_000 })).trim();
}

const ModuleDownload = z.object({ Sum: z.string() });

async function checkModuleSum(
  go: string,
  { path, version, sum }: { path: string; version: string; sum: string },
  options: CommandOptions,
): Promise<void> {
  const args = ['mod', 'download', '-json', `${path}@v${version}`];
  const answer = ModuleDownload.parse(JSON.parse(await runCommand(go, args, options)));
  if (answer.Sum === sum) return;
  throw new OperationalError(`${path} v${version} has the hash ${answer.Sum}, not the known one`);
}
