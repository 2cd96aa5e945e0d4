import { describeError, OperationalError } from '../../src/base/errors';
import type { Progress, Task } from '../terminal';
import {
  type CachedServer,
  type CacheEntry,
  needSpace,
  readEntry,
  withCacheLock,
  writeEntry,
} from './cache';

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
