import { describeError } from '../../src/base/errors';
import { findOnPath } from '../../stack/provision/command';
import type { ProvisionContext } from '../../stack/provision/provision';
import { installWithApt } from './apt';

/** Installs PHP where this process may; elsewhere the tests of PHP are skipped. */
export async function provisionPhp(context: ProvisionContext): Promise<void> {
  if (findOnPath('php', context.env['PATH']) !== undefined) return;
  await installWithApt(context, 'PHP', ['php-cli', 'php-curl']).catch((error) => {
    context.progress.line(`PHP: its tests are skipped, since ${describeError(error)}`);
  });
}
