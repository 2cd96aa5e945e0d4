import { describeError, StackFailure } from '../../src/base/failure';
import type { CachedServer } from '../../stack/provision/cache';
import { withCacheLock } from '../../stack/provision/cache';
import { findOnPath, isExecutable, runCommand } from '../../stack/provision/command';
import type { ProvisionContext } from '../../stack/provision/provision';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const MAC_CHROME = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';
const INSTALL_MS = 5 * 60_000;

/**
 * Finds a browser for the browser tests: `CHROMIUM_PATH`, PATH, or the system's package manager
 * where this process may use it.
 * @throws StackFailure saying how to help it.
 */
export async function provisionChromium(context: ProvisionContext): Promise<CachedServer> {
  const executable = installed(context.env) ?? (await installWithApt(context));
  context.progress.line(`Chromium: ${executable.from} (${executable.path})`);
  return executable;
}

function installed(env: NodeJS.ProcessEnv): CachedServer | undefined {
  const envPath = env['CHROMIUM_PATH'];
  if (envPath !== undefined && envPath !== '') {
    if (isExecutable(envPath)) return { path: envPath, from: 'CHROMIUM_PATH' };
    throw new StackFailure(`CHROMIUM_PATH: ${envPath} is not an executable file`);
  }
  for (const name of NAMES) {
    const path = findOnPath(name, env['PATH']);
    if (path !== undefined) return { path, from: 'on PATH' };
  }
  return isExecutable(MAC_CHROME) ? { path: MAC_CHROME, from: 'installed' } : undefined;
}

async function installWithApt(context: ProvisionContext): Promise<CachedServer> {
  const apt = findOnPath('apt-get', context.env['PATH']);
  if (apt === undefined) throw missing('there is no apt-get here to install it with');
  if (process.getuid?.() !== 0) throw missing('only root can install it with apt-get');
  const { cacheDir, env, progress, signal } = context;
  return await progress.during('Chromium', (task) =>
    withCacheLock(cacheDir, 'chromium', task, signal, async () => {
      const options = {
        timeoutMs: INSTALL_MS,
        signal,
        env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
        onLine: (line: string) => task.say(line.slice(0, 60)),
      };
      const install = () => runCommand(apt, ['install', '-y', 'chromium'], options);
      try {
        // The lists of a fresh machine may be empty or old and are then fetched first.
        await install().catch(async () => {
          await runCommand(apt, ['update'], options);
          await install();
        });
      } catch (error) {
        throw missing(describeError(error));
      }
      const executable = installed(env);
      if (executable === undefined) throw missing('apt-get left no chromium on PATH');
      return { ...executable, from: 'installed with apt-get' };
    }),
  );
}

function missing(why: string): StackFailure {
  return new StackFailure(
    [
      `No Chromium for the browser tests: ${why}.`,
      'Any one of these helps:',
      '  - install Chromium or Google Chrome so that it is on PATH (sudo apt-get install chromium)',
      '  - set CHROMIUM_PATH to a Chromium or Chrome executable',
    ].join('\n'),
  );
}
