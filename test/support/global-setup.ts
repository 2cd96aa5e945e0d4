import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type Child, startChild, waitUntilUp } from '../../stack/child-process';
import { startMongo } from '../../stack/mongo-server';
import { freePort } from '../../stack/ports';
import { mongod } from '../../stack/provision/mongod';
import { cacheDirectory, provision } from '../../stack/provision/provision';
import { temporalCli } from '../../stack/provision/temporal';
import { startTemporal } from '../../stack/temporal-server';
import { showProgress } from '../../stack/terminal';
import { writeBundles } from '../../worker/bundle';
import { startWatchdog, type Watchdog } from '../stack/watchdog';
import { provisionPhp } from './apt';
import { provisionChromium } from './chromium';
import { LONG_HISTORY, publishServers } from './servers';
import { testServer } from './test-server';

export interface TestStack {
  folder: string;
  servers: Child[];
  watchdog: Watchdog;
  /** Whether an `npm start` has written `.data`: what a test left there would stop its connectors. */
  hasData: boolean;
}

declare global {
  /** Handed from setup to teardown, which jest loads as separate modules of one process. */
  var testStack: TestStack | undefined;
}

/** Starts, once for all test files, the servers that they share, in a folder of their own. */
export default async function globalSetup(): Promise<void> {
  const hasData = existsSync('.data');
  const context = {
    cacheDir: cacheDirectory(process.env),
    env: process.env,
    progress: showProgress(process.stderr),
    signal: new AbortController().signal,
  };
  const [mongo, temporal, skipping, browser] = await Promise.all([
    provision(mongod, context),
    provision(temporalCli, context),
    provision(testServer, context),
    provisionChromium(context),
    provisionPhp(context),
  ]);
  const folder = mkdtempSync(join(chooseFolder(), 'durable-payments-test-'));
  const workflowBundles = join(folder, 'workflow-bundles');
  // Once for all files: it takes seconds. From the sources, so that a stale build can't be tested.
  await writeBundles(workflowBundles);
  const servers: Child[] = [];
  try {
    const [mongoServer, temporalServer] = await Promise.all([
      startMongo({
        executable: mongo.path,
        dbPath: join(folder, 'mongodb'),
        port: await freePort(),
        logFile: join(folder, 'mongodb.log'),
      }).then((server) => track(servers, server)),
      startTemporal({
        executable: temporal.path,
        dbFile: join(folder, 'temporal.db'),
        port: await freePort(),
        logFile: join(folder, 'temporal.log'),
        settings: [`limit.historyCount.suggestContinueAsNew=${LONG_HISTORY}`],
      }).then((server) => track(servers, server)),
    ]);
    // Servers that live for seconds: what a JVM does for a long life costs more than it brings.
    process.env['JAVA_TOOL_OPTIONS'] ??= '-XX:+UseSerialGC -XX:TieredStopAtLevel=1';
    publishServers({
      temporalAddress: temporalServer.address,
      mongodbUri: mongoServer.uri,
      timeSkippingServer: writeQuietProgram(folder, skipping.path),
      chromium: browser.path,
      workflowBundles,
      logs: folder,
    });
    publishServers({ product: await startSharedProduct(folder, servers) });
    const pids = servers.map(({ pid }) => pid);
    globalThis.testStack = { folder, servers, watchdog: startWatchdog(pids, folder), hasData };
  } catch (error) {
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

function writeQuietProgram(folder: string, program: string): string {
  const path = join(folder, basename(program));
  const script = `#!/bin/sh\nexec "${program}" "$@" >>"${path}.log" 2>&1\n`;
  writeFileSync(path, script, { mode: 0o755 });
  return path;
}

const PRODUCT_MS_MAX = 60_000;

/** Starts the product that all files use, from the sources, in a process of its own. */
async function startSharedProduct(folder: string, servers: Child[]): Promise<string> {
  const placeFile = join(folder, 'product.json');
  const logFile = join(folder, 'product.log');
  const register = join(__dirname, 'register.js');
  const child = await startChild({
    name: 'the shared product',
    command: process.execPath,
    args: ['--require', register, join(__dirname, 'product-process.ts'), placeFile],
    // Its keys go with the folder, also when it is killed.
    env: { ...process.env, TMPDIR: folder },
    logFile,
    graceMs: 10_000,
  });
  // It stops before the servers that it uses.
  servers.unshift(child);
  const place = async () => readFileSync(placeFile, 'utf8');
  await waitUntilUp(child, logFile, PRODUCT_MS_MAX, place);
  return await place();
}

const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 8 * 1_024 ** 3;

/**
 * Folder for the shared servers: in memory, where there is enough of it and TMPDIR names no other.
 * Their data ends with the run, and would wait for the disk at each commit.
 */
function chooseFolder(): string {
  if (process.env['TMPDIR'] !== undefined) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

function track<T extends Child>(servers: Child[], server: T): T {
  servers.push(server);
  return server;
}
