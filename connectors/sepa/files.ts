import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissingFile } from '../../src/base/errors';
import { syncDirectory, writeSynced } from '../../src/base/file-lock';

/** Readable by the group, which may be that of the transfer to the bank. */
const MODE = 0o640;

/** Matches our names alone: other programs may write into the folder, too. */
const PARTIAL = /^[.][0-9a-f]{16}[.]part$/;
const PARTIAL_MS_MAX = 86_400_000;

/**
 * Writes so that a reader sees all of the file or nothing, also after a loss of power, and while
 * another process writes the same file.
 * @param mayAppear is asked once the file only lacks its name
 * @returns its answer; if false, there is no file
 */
export async function writeWhole(
  dir: string,
  name: string,
  bytes: Uint8Array,
  mayAppear: () => Promise<boolean> = async () => true,
): Promise<boolean> {
  await removeAbandoned(dir);
  const partial = join(dir, `.${randomBytes(8).toString('hex')}.part`);
  try {
    await writeSynced(partial, bytes, MODE);
    if (!(await mayAppear())) {
      await rm(partial, { force: true });
      return false;
    }
    await rename(partial, join(dir, name));
  } catch (error) {
    await rm(partial, { force: true }).catch(() => {});
    throw error;
  }
  await syncDirectory(dir);
  return true;
}

/** Removes what killed processes did not finish: it names payees. */
async function removeAbandoned(dir: string): Promise<void> {
  const oldest = Date.now() - PARTIAL_MS_MAX;
  for (const name of (await readdir(dir)).filter((each) => PARTIAL.test(each))) {
    const path = join(dir, name);
    try {
      if ((await stat(path)).mtimeMs < oldest) await rm(path, { force: true });
    } catch {
      // Another process has finished or removed it. The file to write is what counts.
    }
  }
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
