import { existsSync } from 'node:fs';
import { ENVIRONMENTS } from '../domain/task-queues';
import { makeRecipientRings } from '../keys/recipient-files';
import { RECIPIENT_RINGS, ringPath } from '../keys/recipient-rings';
import type { Audit } from '../store/audit';
import { changing, locked, OF_ALL } from './key-changes';

export interface SplitDeps {
  audit: Audit;
  /** Path of a usable key file, whose lock is held meanwhile. */
  keysFile: string;
  /** Folder that the rings go to; it is made where it is not there. */
  dir: string;
  now: () => Date;
}

/**
 * Gives recipients rings of their own. What stands is left as it is, so it can be killed and run
 * again. Nothing is sealed anew.
 * @returns paths of the files that were written
 * @throws CliFailure `keys_file_busy`, `keys_file_not_written`
 */
export async function splitKeys({ audit, keysFile, dir, now }: SplitDeps): Promise<string[]> {
  return await locked({ keysFile }, async () => {
    for (const environment of ENVIRONMENTS) {
      if (existsSync(ringPath(dir, environment, 'private'))) continue;
      await audit({ act: 'keys.rotated', ...OF_ALL, target: RECIPIENT_RINGS[environment] });
    }
    return changing(() => makeRecipientRings(dir, now()));
  });
}
