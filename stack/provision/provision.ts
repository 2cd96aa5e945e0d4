import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { stat, statfs, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { describeError, OperationalError } from '../../src/base/errors';
import { tryLock } from '../../src/base/file-lock';
import { readJson } from '../state-file';
import type { Progress, Task } from '../terminal';
import { hashFile } from './download';

interface CacheEntry {
  folder: string;
  executable: string;
  sha256?: string;
}

export interface CachedServer {
  path: string;
  from: string;
}

export interface Route extends CacheEntry {
  name: string;
  megabytes: number;
  fetch(folder: string, task: Task, context: ProvisionContext): Promise<void>;
}

export interface Server {
  name: string;
  installed(context: ProvisionContext): Promise<CachedServer | undefined>;
  routes: readonly Route[];
  help: readonly string[];
}

export interface ProvisionContext {
  cacheDir: string;
  env: NodeJS.ProcessEnv;
  progress: Progress;
  signal: AbortSignal;
}

/** @throws OperationalError naming the attempts and the remedies */
export async function provision(server: Server, context: ProvisionContext): Promise<CachedServer> {
  const executable = await context.progress.during(server.name, async (task) => {
    const ready = (await server.installed(context)) ?? (await inCache(server, context));
    if (ready !== undefined) return ready;
    const lockName = server.name.toLowerCase().replace(/[^a-z]+/g, '-');
    return await withCacheLock(context.cacheDir, lockName, task, context.signal, async () => {
      // Another process may have downloaded it while this one waited.
      return (await inCache(server, context)) ?? (await fetchByRoutes(server, task, context));
    });
  });
  context.progress.line(`${server.name}: ${executable.from} (${executable.path})`);
  return executable;
}

async function inCache(
  server: Server,
  context: ProvisionContext,
): Promise<CachedServer | undefined> {
  for (const route of server.routes) {
    const entry = await readEntry(context.cacheDir, route);
    if (entry !== undefined) return { path: entry.path, from: `${entry.from}, cached` };
  }
  return undefined;
}

async function fetchByRoutes(
  server: Server,
  task: Task,
  context: ProvisionContext,
): Promise<CachedServer> {
  const failures: string[] = [];
  for (const route of server.routes) {
    try {
      task.say(route.name);
      await needSpace(context.cacheDir, route.megabytes, server.name);
      return await writeEntry(context.cacheDir, route, route.name, (folder) =>
        route.fetch(folder, task, context),
      );
    } catch (error) {
      context.signal.throwIfAborted();
      failures.push(`  ${route.name}: ${describeError(error)}`);
      context.progress.line(`${server.name}: ${route.name} did not work, trying on`);
    }
  }
  const help = server.help.map((hint) => `  - ${hint}`);
  throw new OperationalError(
    [`${server.name} could not be had.`, ...failures, 'Any one of these helps:', ...help].join(
      '\n',
    ),
  );
}

export function cacheDirectory(env: NodeJS.ProcessEnv): string {
  const caches = env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(caches, 'durable-payments');
}

const LOCK_POLL_MS = 500;
const PARTIAL = '.partial-';

const Manifest = z.object({ from: z.string(), bytes: z.int(), sha256: z.string() });

/** @returns undefined if the entry is missing, incomplete or changed */
async function readEntry(cacheDir: string, entry: CacheEntry): Promise<CachedServer | undefined> {
  const folder = join(cacheDir, entry.folder);
  const path = join(folder, entry.executable);
  const manifest = readJson(join(folder, 'manifest.json'), Manifest);
  const stats = await stat(path).catch(() => undefined);
  for (const each of [cacheDir, folder, path]) if (!(await isOwn(each))) return undefined;
  if (manifest === undefined || stats?.size !== manifest.bytes) return undefined;
  // The manifest is no proof: who exchanges the executable can exchange it, too.
  if ((await hashFile(path)) !== (entry.sha256 ?? manifest.sha256)) return undefined;
  return { path, from: manifest.from };
}

/**
 * Renames a finished directory, so that an entry is never partial. The caller holds the server's
 * lock.
 */
async function writeEntry(
  cacheDir: string,
  entry: CacheEntry,
  from: string,
  make: (folder: string) => Promise<void>,
): Promise<CachedServer> {
  const folder = join(cacheDir, entry.folder);
  const partial = join(cacheDir, `${PARTIAL}${entry.folder}-${randomUUID()}`);
  sweepPartials(cacheDir, entry);
  mkdirSync(partial, { mode: PRIVATE });
  try {
    await make(partial);
    const executable = join(partial, entry.executable);
    // A tool may follow a umask that lets the group write.
    chmodSync(executable, 0o755);
    const manifest = {
      from,
      bytes: (await stat(executable)).size,
      sha256: await hashFile(executable),
    };
    await writeFile(join(partial, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return { path: join(folder, entry.executable), from };
}

export async function withCacheLock<T>(
  cacheDir: string,
  name: string,
  task: Task,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  mkdirSync(cacheDir, { recursive: true, mode: PRIVATE });
  closeToOthers(cacheDir);
  const path = join(cacheDir, `${name}.lock`);
  // Tasks of one process never share a name, so the process id is enough.
  let lock = tryLock(path);
  while (lock.holder !== undefined) {
    task.say(`process ${lock.holder.pid} is fetching it, waiting`);
    await sleep(LOCK_POLL_MS, undefined, { signal });
    lock = tryLock(path);
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** @throws OperationalError if the disk of `folder` has less than `megabytes` free */
export async function needSpace(folder: string, megabytes: number, why: string): Promise<void> {
  const disk = await statfs(folder);
  const free = Math.floor((disk.bavail * disk.bsize) / 1_000_000);
  if (free >= megabytes) return;
  throw new OperationalError(
    `The disk of ${folder} has ${free} MB free, ${why} needs ${megabytes} MB. ` +
      'Free some space, or name a folder on another disk (XDG_CACHE_HOME, DATA_DIR).',
  );
}

/** Whether others cannot have replaced the file. */
async function isOwn(path: string): Promise<boolean> {
  const me = process.getuid?.();
  const stats = await stat(path).catch(() => undefined);
  if (stats === undefined) return false;
  if (me === undefined) return true;
  return (stats.uid === me || stats.uid === 0) && !isShared(stats.mode);
}

/** @throws OperationalError if others may write, and this user cannot change that */
function closeToOthers(folder: string): void {
  const { mode } = statSync(folder);
  if (process.getuid === undefined || !isShared(mode)) return;
  try {
    chmodSync(folder, PRIVATE);
  } catch (error) {
    throw new OperationalError(
      `Others may write to ${folder}, whose programs would run here (${describeError(error)}). ` +
        'Let its owner run `chmod go-w` on it, or name another folder (XDG_CACHE_HOME).',
    );
  }
}

function isShared(mode: number): boolean {
  return (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
}

const PRIVATE = 0o700;
const WRITABLE_BY_OTHERS = 0o022;
/** In such a directory, as /tmp is, nobody replaces the files of others. */
const STICKY = 0o1000;

function sweepPartials(cacheDir: string, entry: CacheEntry): void {
  if (!existsSync(cacheDir)) return;
  for (const name of readdirSync(cacheDir)) {
    if (!name.startsWith(`${PARTIAL}${entry.folder}-`)) continue;
    rmSync(join(cacheDir, name), { recursive: true, force: true });
  }
}
