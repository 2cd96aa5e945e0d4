import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperationalError } from '../src/base/errors';
import { describeOtherFormat, FORMAT } from '../src/domain/format';
import { replaceFile } from './state-file';

const DATA = ['ports.json', 'mongodb', 'temporal'];
const TEXT = /^format (\d+)$/;

/**
 * Marks an unused data directory before any other write.
 * @throws OperationalError if its data has another format
 */
export function markDataDir(dataDir: string): void {
  const path = join(dataDir, 'version');
  const isMarked = existsSync(path);
  if (!isMarked && !DATA.some((name) => existsSync(join(dataDir, name)))) {
    replaceFile(path, `format ${FORMAT}\n`);
    return;
  }
  const digits = isMarked ? TEXT.exec(readFileSync(path, 'utf8').trim())?.[1] : undefined;
  const found = digits === undefined ? undefined : Number(digits);
  if (found === FORMAT) return;
  const remedy = 'Set DATA_DIR to another directory, or move this one away.';
  throw new OperationalError(describeOtherFormat(`DATA_DIR ${dataDir}`, found, remedy));
}
