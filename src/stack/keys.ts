import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StackFailure } from './failure';
import { writeWhole } from './state-file';

/**
 * The path of the service's key file, made at the first start (mode 0600). Whoever loses it can
 * no longer open what was sealed with it.
 * @throws StackFailure when there is data from before and the file is gone
 */
export function keysFile(dataDir: string): string {
  const path = join(dataDir, 'keys.json');
  if (!existsSync(path)) {
    if (existsSync(join(dataDir, 'mongodb'))) {
      throw new StackFailure(
        `${path} is gone, but there is data that was sealed with it.\n` +
          'Put the file back from your backup, or start afresh with another DATA_DIR.',
      );
    }
    const keys = {
      pay_token: newKey(),
      fingerprint: newKey(),
      seal: { current: 'k1', keys: { k1: newKey() } },
    };
    writeWhole(path, `${JSON.stringify(keys, null, 2)}\n`);
  }
  return path;
}

function newKey(): string {
  return randomBytes(32).toString('base64url');
}
