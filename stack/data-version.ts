import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperationalError } from '../src/base/errors';
import { replaceFile } from './state-file';

const VERSION = '2';

const DATA = ['ports.json', 'mongodb', 'temporal'];

/**
 * Marks an unused data directory before any other write.
 * @throws OperationalError if another major version wrote it
 */
export function markDataDir(dataDir: string): void {
  const path = join(dataDir, 'version');
  const hasData = DATA.some((name) => existsSync(join(dataDir, name)));
  const version = existsSync(path) ? readFileSync(path, 'utf8').trim() : hasData ? '1' : undefined;
  if (version === undefined) replaceFile(path, `${VERSION}\n`);
  if (version === undefined || version === VERSION) return;
  throw new OperationalError(
    `DATA_DIR ${dataDir} holds data of version ${version}, which version ${VERSION} does not read. ` +
      'Move it away, or set DATA_DIR to another directory: version 2 starts over.',
  );
}
