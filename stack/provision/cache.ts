import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { StackFailure } from '../../src/os/failure';
import { tryLock } from '../../src/os/lock';
import type { Task } from '../terminal';
import { sha256Of } from './download';

const LOCK_POLL_MS = 500;
const PARTIAL = '.partial-';

/** Manifest beside a cached server, which tells where it is from and whether it is damaged. */
const Manifest = z.object({ from: z.string(), bytes: z.int(), sha256: z.string() });

export interface CacheEntry {
  /** Folder in the cache, with version and platform in its name. */
  folder: string;
  /** The executable, relative to the folder. */
  executable: string;
}

export interface Cached {
  path: string;
  from: string;
}

/**
 * Finds the executable of a complete entry; undefined when it is absent or not what was put there.
 */
export async function readEntry(cacheDir: string, entry: CacheEntry): Promise<Cached | undefined> {
  const folder = join(cacheDir, entry.folder);
  const path = join(folder, entry.executable);
  const manifest = readManifest(join(folder, 'manifest.json'));
  const found = await stat(path).catch(() => undefined);
  for (const each of [cacheDir, folder, path]) if (!(await isOwn(each))) return undefined;
  if (manifest === undefined || found?.size !== manifest.bytes) return undefined;
  if ((await sha256Of(path)) !== manifest.sha256) return undefined;
  return { path, from: manifest.from };
}

/**
 * Makes an entry in a temporary folder and renames it in, so that it is whole or absent.
 * The caller holds the lock of that server.
 */
export async function writeEntry(
  cacheDir: string,
  entry: CacheEntry,
  from: string,
  make: (folder: string) => Promise<void>,
): Promise<Cached> {
  const folder = join(cacheDir, entry.folder);
  const partial = join(cacheDir, `${PARTIAL}${entry.folder}-${randomUUID()}`);
  sweepPartials(cacheDir, entry);
  mkdirSync(partial);
  try {
    await make(partial);
    const made = join(partial, entry.executable);
    const manifest = { from, bytes: (await stat(made)).size, sha256: await sha256Of(made) };
    await writeFile(join(partial, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return { path: join(folder, entry.executable), from };
}

/** Runs `work` while holding the lock of one server, waiting while another process has it. */
export async function withCacheLock<T>(
  cacheDir: string,
  name: string,
  task: Task,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  mkdirSync(cacheDir, { recursive: true });
  const path = join(cacheDir, `${name}.lock`);
  // Several tasks of one process never share a name, so the process id is enough.
  let lock = tryLock(path);
  while (lock.held !== undefined) {
    task.say(`process ${lock.held.pid} is fetching it, waiting`);
    await sleep(LOCK_POLL_MS, undefined, { signal });
    lock = tryLock(path);
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** @throws StackFailure when the disk of `folder` has less than `megabytes` free. */
export async function needSpace(folder: string, megabytes: number, why: string): Promise<void> {
  const disk = await statfs(folder);
  const free = Math.floor((disk.bavail * disk.bsize) / 1_000_000);
  if (free >= megabytes) return;
  throw new StackFailure(
    `The disk of ${folder} has ${free} MB free, ${why} needs ${megabytes} MB. ` +
      'Free some space, or name a folder on another disk (CACHE_DIR, DATA_DIR).',
  );
}

/**
 * Whether nobody else could have put something else there: a cache that others may write to is not
 * run from.
 */
async function isOwn(path: string): Promise<boolean> {
  const me = process.getuid?.();
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return false;
  if (me === undefined) return true;
  const isShared = (found.mode & (WRITABLE_BY_OTHERS | STICKY)) === WRITABLE_BY_OTHERS;
  return (found.uid === me || found.uid === 0) && !isShared;
}

const WRITABLE_BY_OTHERS = 0o002;
/** In such a folder, as /tmp is, nobody replaces the files of others. */
const STICKY = 0o1000;

function readManifest(path: string): z.infer<typeof Manifest> | undefined {
  try {
    return Manifest.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return undefined;
  }
}

function sweepPartials(cacheDir: string, entry: CacheEntry): void {
  if (!existsSync(cacheDir)) return;
  for (const name of readdirSync(cacheDir)) {
    if (!name.startsWith(`${PARTIAL}${entry.folder}-`)) continue;
    rmSync(join(cacheDir, name), { recursive: true, force: true });
  }
}
