import { readFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, MongoClient } from 'mongodb';
import { z } from 'zod';
import { StackFailure } from '../../src/os/failure';
import { createStores, ensureIndexes } from '../../src/store';
import { startChild } from '../../stack/child-process';
import { lastLines } from '../../stack/log-file';
import { startMongo } from '../../stack/mongo-server';
import { freePort } from '../../stack/ports';
import { cacheDirectory, mongod, provision } from '../../stack/provision';
import { checkRemoteMongo } from '../../stack/remote-servers';
import type { Setting } from '../servers';
import { createFill } from './fill';

const SAMPLE_MS = 100;
const GRACE_MS = 2_000;
const NAME_WIDTH = 42;
const COLUMN_WIDTH = 17;
/** Postings that come between the first verification and the next one, by all of them. */
const ADDED_SHARE = 0.01;

const Verified = z.object({
  data: z.object({
    books: z.number(),
    postings: z.number(),
    differences_total: z.number(),
    checkpoints_sealed: z.number(),
  }),
});

/** Figures of `ledger verify`, run as a process of its own. */
interface VerifyFigures {
  name: string;
  books: number;
  postings: number;
  checkpoints_sealed: number;
  seconds: number;
  /** Most memory that the process held, in MiB; null where there is no /proc. */
  rss_mib: number | null;
}

interface LedgerFigures {
  fill: { seconds: number; indexes_seconds: number };
  runs: VerifyFigures[];
}

/**
 * Fills a ledger, and verifies it: for the first time, after one in a hundred was added, and in full.
 * All that it started or made is gone when it returns.
 * @param broken rejects when the run can't go on
 * @throws StackFailure when a verification fails or finds a difference
 */
export async function runLedgerBench(
  size: number,
  setting: Setting,
  broken: Promise<never>,
): Promise<LedgerFigures> {
  const server = await serverFor(setting);
  const name = `bench_${process.pid}_ledger`;
  // Without a time-out, since the indexes of millions of rows take minutes.
  const mongo = await new MongoClient(server.uri, {
    appName: 'bench',
    runtimeAdapters: { os },
  }).connect();
  const db = mongo.db(name);
  try {
    const measuring = measure(size, setting, { uri: server.uri, db });
    return await Promise.race([measuring, broken]);
  } finally {
    await db.dropDatabase();
    await mongo.close();
    await server.stop();
  }
}

async function serverFor({ dir, env, progress, signal }: Setting) {
  const given = env['MONGODB_URI'];
  if (given !== undefined && given !== '') {
    await checkRemoteMongo(given);
    return { uri: given, stop: async () => {} };
  }
  const cacheDir = cacheDirectory(env);
  const { path } = await provision(mongod, { cacheDir, env, progress, signal });
  const options = { executable: path, dbPath: join(dir, 'mongodb'), port: await freePort() };
  return await startMongo({ ...options, logFile: join(dir, 'mongodb.log'), signal });
}

async function measure(
  size: number,
  setting: Setting,
  { uri, db }: { uri: string; db: Db },
): Promise<LedgerFigures> {
  const { progress, signal } = setting;
  const added = Math.ceil(size * ADDED_SHARE);
  const fill = createFill(db, size + added);
  const filling = await timed(() =>
    progress.during('Filling', (task) => fill.add(size, task.say, signal)),
  );
  const indexing = await timed(() =>
    progress.during('Making indexes', () => ensureIndexes(createStores(db))),
  );
  const verify = async (name: string, ...options: string[]): Promise<VerifyFigures> => {
    const run = () => runVerify({ uri, db: db.databaseName }, setting, options);
    const { result, seconds } = await timed(() => progress.during(name, run));
    return { name, ...result, seconds };
  };
  const first = await verify('ledger verify, the first time');
  await progress.during('Adding', (task) => fill.add(added, task.say, signal));
  const next = await verify(`ledger verify, ${added} postings later`);
  const full = await verify('ledger verify --full', '--full');
  return {
    fill: { seconds: filling.seconds, indexes_seconds: indexing.seconds },
    runs: [first, next, full],
  };
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; seconds: number }> {
  const began = performance.now();
  const result = await work();
  return { result, seconds: (performance.now() - began) / 1_000 };
}

/** Runs the command line, and watches its memory. @throws StackFailure unless nothing differs */
async function runVerify(
  { uri, db }: { uri: string; db: string },
  { dir, env, signal }: Setting,
  options: readonly string[],
) {
  const logFile = join(dir, `verify-${performance.now()}.log`);
  const main = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
  const child = await startChild({
    name: 'ledger verify',
    command: process.execPath,
    args: [main, 'ledger', 'verify', '--json', ...options],
    env: { ...env, MONGODB_URI: uri, MONGODB_DB: db, DATA_DIR: dir },
    logFile,
    graceMs: GRACE_MS,
  });
  let rss_mib: number | null = null;
  while (!child.hasExited() && !signal.aborted) {
    rss_mib = peakMemory(child.pid) ?? rss_mib;
    await Promise.race([child.exited, sleep(SAMPLE_MS)]);
  }
  if (signal.aborted) await child.stop();
  signal.throwIfAborted();
  const text = readFileSync(logFile, 'utf8');
  const found = Verified.safeParse(parsed(text));
  if (!found.success || found.data.data.differences_total > 0) {
    throw new StackFailure(`ledger verify ${await child.exited}:\n${lastLines(logFile)}`);
  }
  const { books, postings, checkpoints_sealed } = found.data.data;
  return { books, postings, checkpoints_sealed, rss_mib };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Most memory that a process has held so far, in MiB; undefined where there is no /proc. */
function peakMemory(pid: number): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
    return kib === undefined ? undefined : Math.round(Number(kib) / 1_024);
  } catch {
    return undefined;
  }
}

/** Writes the figures for people. */
export function reportLedger({ fill, runs }: LedgerFigures): string {
  const rows = runs.map(({ name, seconds, postings, rss_mib, checkpoints_sealed }) => {
    const rate = Math.round(postings / seconds);
    const memory = rss_mib === null ? '-' : `${rss_mib} MiB`;
    const cells = [postings, `${seconds.toFixed(1)} s`, rate, memory, checkpoints_sealed].map(
      String,
    );
    return name.padEnd(NAME_WIDTH) + cells.map((cell) => cell.padStart(COLUMN_WIDTH)).join('');
  });
  const heading = ['postings', 'time', 'postings/s', 'memory', 'new checkpoints'];
  return [
    '',
    `Filled in ${fill.seconds.toFixed(1)} s, indexes in ${fill.indexes_seconds.toFixed(1)} s`,
    '',
    ''.padEnd(NAME_WIDTH) + heading.map((cell) => cell.padStart(COLUMN_WIDTH)).join(''),
    ...rows,
    '',
  ].join('\n');
}
