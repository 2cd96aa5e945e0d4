import { describeError, OperationalError } from '../../src/base/errors';
import { findOnPath, runCommand } from '../../stack/provision/command';
import type { ProvisionContext } from '../../stack/provision/provision';
import { withCacheLock } from '../../stack/provision/provision';

const INSTALL_MS = 5 * 60_000;

/**
 * Installs packages by the system's package manager, where this process may use it.
 * @param name what they are to people
 * @throws Error saying why it can't
 */
export async function installWithApt(
  { cacheDir, env, progress, signal }: ProvisionContext,
  name: string,
  packages: readonly string[],
): Promise<void> {
  const apt = findOnPath('apt-get', env['PATH']);
  if (apt === undefined) throw new OperationalError('there is no apt-get here to install it with');
  if (process.getuid?.() !== 0) throw new OperationalError('only root can install it with apt-get');
  await progress.during(name, (task) =>
    withCacheLock(cacheDir, 'apt', task, signal, async () => {
      const options = {
        timeoutMs: INSTALL_MS,
        signal,
        env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
      };
      const install = () => runCommand(apt, ['install', '-y', ...packages], options);
      // The lists of a fresh machine may be empty or old and are then fetched first.
      await install().catch(async () => {
        await runCommand(apt, ['update'], options);
        await install();
      });
    }),
  );
}

export async function provisionPhp(context: ProvisionContext): Promise<void> {
  if (findOnPath('php', context.env['PATH']) !== undefined) return;
  await installWithApt(context, 'PHP', ['php-cli', 'php-curl']).catch((error) => {
    context.progress.line(`PHP: its tests are skipped, since ${describeError(error)}`);
  });
}
