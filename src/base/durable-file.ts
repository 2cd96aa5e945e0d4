import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { getErrorCode } from './errors';

/** Writes a file that must not exist, and returns once it survives a loss of power. */
export async function writeSynced(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
  const file = await open(path, flags, mode);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Call it after a file was created, renamed or removed, which the directory may lose otherwise. */
export async function syncDirectory(dir: string): Promise<void> {
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
