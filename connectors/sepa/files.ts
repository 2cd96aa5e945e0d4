import { constants } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { getErrorCode, isMissingFile } from '../../src/base/errors';

/** Readable by the group, which may be that of the transfer to the bank. */
const MODE = 0o640;

/** Writes so that a reader sees all of the file or nothing, also after a loss of power. */
export async function writeWhole(dir: string, name: string, bytes: Uint8Array): Promise<void> {
  const partial = join(dir, `.${name}.part`);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const file = await open(partial, flags, MODE);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, join(dir, name));
  await syncDirectory(dir);
}

/** @returns false if the file is gone */
export async function putFile(from: string, dir: string, name: string): Promise<boolean> {
  try {
    await rename(from, join(dir, name));
  } catch (error) {
    if (isMissingFile(error)) return false;
    throw error;
  }
  await syncDirectory(dir);
  return true;
}

export async function makeDirectories(dir: string, names: readonly string[]): Promise<void> {
  for (const name of names) await mkdir(join(dir, name), { recursive: true });
}

async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } catch (error) {
    // Some network file systems cannot sync a directory.
    if (getErrorCode(error) !== 'EINVAL') throw error;
  } finally {
    await handle.close();
  }
}
