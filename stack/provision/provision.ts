import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { stat, statfs, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { describeError, OperationalError } from '../../src/base/errors';
import { tryLock } from '../../src/base/file-lock';
import { readJson } from '../data-dir';
import type { Progress, Task } from '../terminal';
import { findOnPath, runCommand } from './command';
import { hashFile } from './download';

const LOCK_POLL_MS = 500;
const PARTIAL = '.partial-';
const PRIVATE = 0o700;
const WRITABLE_BY_OTHERS = 0o022;
/** In such a directory, as /tmp is, nobody replaces the files of others. */
const STICKY = 0o1000;

export interface CachedServer {
  path: string;
  from: string;
}

/** Way to fetch a server into a folder of the cache. */
export interface Route {
  name: string;
  folder: string;
  executable: string;
  sha256?: string;
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
  const { cacheDir, progress, signal } = context;
  const executable = await progress.during(server.name, async (task) => {
    const ready = (await server.installed(context)) ?? (await findCached(server, cacheDir));
    if (ready !== undefined) return ready;
    const lockName = server.name.toLowerCase().replace(/[^a-z]+/g, '-');
    return await withCacheLock(cacheDir, lockName, task, signal, async () => {
      // Another process may have downloaded it while this one waited.
      return (await findCached(server, cacheDir)) ?? (await fetchByRoutes(server, task, context));
    });
  });
  progress.line(`${server.name}: ${executable.from} (${executable.path})`);
  return executable;
}

/** @param describe version of a usable one, from what `--version` prints */
export async function findInstalled(
  name: string,
  env: NodeJS.ProcessEnv,
  describe: (output: string) => string | undefined,
): Promise<CachedServer | undefined> {
  const path = findOnPath(name, env['PATH']);
  if (path === undefined) return undefined;
  const output = await runCommand(path, ['--version'], { timeoutMs: 10_000 }).catch(() => '');
  const version = describe(output);
  return version === undefined ? undefined : { path, from: `on PATH, ${version}` };
}

const Manifest = z.object({ from: z.string(), sha256: z.string() });

/** @returns undefined if each entry is missing, incomplete or changed */
async function findCached({ routes }: Server, cacheDir: string): Promise<CachedServer | undefined> {
  for (const route of routes) {
    const folder = join(cacheDir, route.folder);
    const path = join(folder, route.executable);
    const manifest = readJson(join(folder, 'manifest.json'), Manifest);
    if (manifest === undefined) continue;
    const stats = [cacheDir, folder, path].map((each) => stat(each).catch(() => undefined));
    if (!(await Promise.all(stats)).every(isOwn)) continue;
    // The manifest is no proof: who exchanges the executable can exchange it, too.
    if ((await hashFile(path)) !== (route.sha256 ?? manifest.sha256)) continue;
    return { path, from: `${manifest.from}, cached` };
  }
  return undefined;
}

/** Whether others cannot have replaced the file. */
function isOwn(stats: Stats | undefined): boolean {
  const me = process.getuid?.();
  if (stats === undefined) return false;
  if (me === undefined) return true;
  return (stats.uid === me || stats.uid === 0) && !isShared(stats.mode);
}

function isShared(mode: number): boolean {
  return (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
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
      return await fetchByRoute(route, task, context);
    } catch (error) {
      context.signal.throwIfAborted();
      failures.push(`  ${route.name}: ${describeError(error)}`);
      context.progress.line(`${server.name}: ${route.name} did not work, trying on`);
    }
  }
  const help = server.help.map((hint) => `  - ${hint}`);
  const lines = [`${server.name} could not be had.`, ...failures, 'Any one of these helps:'];
  throw new OperationalError([...lines, ...help].join('\n'));
}

/**
 * Renames a finished directory, so that an entry is never partial. The caller holds the server's
 * lock.
 */
async function fetchByRoute(
  route: Route,
  task: Task,
  context: ProvisionContext,
): Promise<CachedServer> {
  const { cacheDir } = context;
  const folder = join(cacheDir, route.folder);
  const prefix = `${PARTIAL}${route.folder}-`;
  for (const name of readdirSync(cacheDir).filter((each) => each.startsWith(prefix))) {
    rmSync(join(cacheDir, name), { recursive: true, force: true });
  }
  const partial = join(cacheDir, `${prefix}${randomUUID()}`);
  mkdirSync(partial, { mode: PRIVATE });
  try {
    await route.fetch(partial, task, context);
    const executable = join(partial, route.executable);
    // A tool may follow a umask that lets the group write.
    chmodSync(executable, 0o755);
    const manifest = { from: route.name, sha256: await hashFile(executable) };
    await writeFile(join(partial, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return { path: join(folder, route.executable), from: route.name };
}

export function cacheDirectory(env: NodeJS.ProcessEnv): string {
  const caches = env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(caches, 'durable-payments');
}

/** @throws OperationalError if others may write to the cache, and this user cannot change that */
export async function withCacheLock<T>(
  cacheDir: string,
  name: string,
  task: Task,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  mkdirSync(cacheDir, { recursive: true, mode: PRIVATE });
  if (process.getuid !== undefined && isShared(statSync(cacheDir).mode)) {
    try {
      chmodSync(cacheDir, PRIVATE);
    } catch (error) {
      throw new OperationalError(
        `Others may write to ${cacheDir}, whose programs would run here (${describeError(error)}). ` +
          'Let its owner run `chmod go-w` on it, or name another folder (XDG_CACHE_HOME).',
      );
    }
  }
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
