import {
  constants,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { hostname } from 'node:os';
import { z } from 'zod';
import { getErrorCode } from './errors';
import { getStartTime, isAlive } from './process-table';

/** The process of another machine cannot be looked up. */
const FOREIGN_LOCK_MS_MAX = 30 * 60_000;

const Holder = z.object({ pid: z.int(), born: z.string(), host: z.string() });
type LockHolder = z.infer<typeof Holder>;

interface LockAttempt {
  holder?: LockHolder;
  release(): void;
}

/**
 * Tries once to lock a file, and replaces the lock of an ended process; the start time detects a
 * reused process id.
 */
export function tryLock(path: string, pid = process.pid): LockAttempt {
  const ownPath = `${path}.${pid}`;
  const text = JSON.stringify({ pid, born: getStartTime(pid), host: hostname() });
  const release = () => {
    try {
      if (readFileSync(path, 'utf8') === text) rmSync(path);
    } catch {
      // The data folder may have been deleted.
    }
  };
  writeFileSync(ownPath, text);
  try {
    for (;;) {
      // Linking is atomic, so no process reads a partial lock.
      if (tryLink(ownPath, path)) return { release };
      const holder = readHolder(path);
      if (holder !== undefined && isHeld(path, holder)) return { holder, release: () => {} };
      removeStale(path, `${ownPath}.stale`, holder);
    }
  } finally {
    rmSync(ownPath, { force: true });
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (getErrorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function isHeld(path: string, holder: LockHolder): boolean {
  if (holder.host === hostname())
    return isAlive(holder.pid) && getStartTime(holder.pid) === holder.born;
  const writtenAtMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Date.now() - writtenAtMs < FOREIGN_LOCK_MS_MAX;
}

/** Another process may have replaced the stale lock, so it is renamed first. */
function removeStale(path: string, asidePath: string, staleHolder: LockHolder | undefined): void {
  try {
    renameSync(path, asidePath);
  } catch {
    return;
  }
  const movedHolder = readHolder(asidePath);
  if (movedHolder !== undefined && JSON.stringify(movedHolder) !== JSON.stringify(staleHolder))
    tryLink(asidePath, path);
  rmSync(asidePath, { force: true });
}

function readHolder(path: string): LockHolder | undefined {
  try {
    return Holder.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

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
