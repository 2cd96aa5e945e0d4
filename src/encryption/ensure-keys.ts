import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OperationalError } from '../base/errors';
import { ENVIRONMENTS } from '../domain/environment';
import { createAuditKeys } from './audit-keys';
import { createKeyFile } from './key-file';
import { createRecipientKeyRings, getHolder, keyRingPath } from './recipient-pairs';

export interface KeyPaths {
  KEYS_FILE: string;
  KEYS_DIR: string;
}

/**
 * Finds the keys of a data directory; creates them only at the first start.
 * @param connectors live ones that pay recipients
 * @throws OperationalError when there is data without its keys
 */
export function ensureKeys(dataDir: string, connectors: readonly string[] = []): KeyPaths {
  const paths = { KEYS_FILE: join(dataDir, 'keys.json'), KEYS_DIR: join(dataDir, 'keys') };
  const privateFiles = ENVIRONMENTS.map((env) => keyRingPath(paths.KEYS_DIR, env, 'private'));
  const missing = [paths.KEYS_FILE, ...privateFiles].filter((path) => !existsSync(path));
  if (missing.length > 0 && existsSync(join(dataDir, 'mongodb'))) {
    throw new OperationalError(
      `There is data, but a file with its keys is missing: ${missing.join(', ')}.\n` +
        'Restore it from your backup, or start over with another DATA_DIR.',
    );
  }
  if (missing.includes(paths.KEYS_FILE)) createKeyFile(paths.KEYS_FILE);
  // Later, a connector first needs a program that reads its own file: `keys split` creates it.
  const holders = missing.length === 0 ? [] : connectors.map(getHolder);
  const now = new Date();
  createRecipientKeyRings(paths.KEYS_DIR, now, holders);
  createAuditKeys(paths.KEYS_DIR, now);
  return paths;
}
