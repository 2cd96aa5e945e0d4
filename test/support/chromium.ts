import { describeError, OperationalError } from '../../src/base/errors';
import { findOnPath, isExecutable } from '../../stack/provision/command';
import type { CachedServer, ProvisionContext } from '../../stack/provision/provision';
import { installWithApt } from './apt';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const MACOS_CHROME = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';

/**
 * Finds a browser for the browser tests: `CHROMIUM_PATH`, PATH, or the system's package manager
 * where this process may use it.
 * @throws OperationalError saying how to help it.
 */
export async function provisionChromium(context: ProvisionContext): Promise<CachedServer> {
  const executable = findInstalled(context.env) ?? (await install(context));
  context.progress.line(`Chromium: ${executable.from} (${executable.path})`);
  return executable;
}

function findInstalled(env: NodeJS.ProcessEnv): CachedServer | undefined {
  const envPath = env['CHROMIUM_PATH'];
  if (envPath !== undefined && envPath !== '') {
    if (isExecutable(envPath)) return { path: envPath, from: 'CHROMIUM_PATH' };
    throw new OperationalError(`CHROMIUM_PATH: ${envPath} is not an executable file`);
  }
  for (const name of NAMES) {
    const path = findOnPath(name, env['PATH']);
    if (path !== undefined) return { path, from: 'on PATH' };
  }
  return isExecutable(MACOS_CHROME) ? { path: MACOS_CHROME, from: 'installed' } : undefined;
}

async function install(context: ProvisionContext): Promise<CachedServer> {
  await installWithApt(context, 'Chromium', ['chromium']).catch((error) => {
    throw missing(describeError(error));
  });
  const executable = findInstalled(context.env);
  if (executable === undefined) throw missing('apt-get left no chromium on PATH');
  return { ...executable, from: 'installed with apt-get' };
}

function missing(why: string): OperationalError {
  return new OperationalError(
    [
      `No Chromium for the browser tests: ${why}.`,
      'Any one of these helps:',
      '  - install Chromium or Google Chrome so that it is on PATH (sudo apt-get install chromium)',
      '  - set CHROMIUM_PATH to a Chromium or Chrome executable',
    ].join('\n'),
  );
}
