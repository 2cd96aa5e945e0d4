import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { z } from 'zod';
import { errorCode } from './failure';
import { birthMark, isAlive } from './process-table';

/** Life of a lock of another machine (in a shared folder), whose process can't be looked up. */
const FOREIGN_LOCK_MS_MAX = 30 * 60_000;

const Holder = z.object({ pid: z.int(), born: z.string(), host: z.string() });
type LockHolder = z.infer<typeof Holder>;

/** Outcome of a try: `held` names the holder, and is undefined when the lock is ours. */
export interface LockAttempt {
  held?: LockHolder;
  release(): void;
}

/**
 * Tries once to take a lock file. A lock whose process has ended is stale and is taken over; a
 * process id that was given out anew is told apart by its start time.
 */
export function tryLock(path: string, pid = process.pid): LockAttempt {
  const mine = `${path}.${pid}`;
  const text = JSON.stringify({ pid, born: birthMark(pid), host: hostname() });
  writeFileSync(mine, text);
  try {
    for (;;) {
      // A link is made whole or not at all, so that no one ever reads half a lock.
      if (tryLink(mine, path)) return { release: () => releaseLock(path, text) };
      const holder = readHolder(path);
      if (holder !== undefined && isHeld(path, holder)) return { held: holder, release: () => {} };
      removeStale(path, `${mine}.stale`, holder);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function isHeld(path: string, holder: LockHolder): boolean {
  if (holder.host === hostname())
    return isAlive(holder.pid) && birthMark(holder.pid) === holder.born;
  const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Date.now() - written < FOREIGN_LOCK_MS_MAX;
}

/** Removes a stale lock. It is moved aside first, as another process may have taken it over. */
function removeStale(path: string, aside: string, seen: LockHolder | undefined): void {
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  const moved = readHolder(aside);
  if (moved !== undefined && JSON.stringify(moved) !== JSON.stringify(seen)) tryLink(aside, path);
  rmSync(aside, { force: true });
}

function readHolder(path: string): LockHolder | undefined {
  try {
    return Holder.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

function releaseLock(path: string, text: string): void {
  try {
    if (readFileSync(path, 'utf8') === text) rmSync(path);
  } catch {
    // The lock is gone when its data folder is.
  }
}
