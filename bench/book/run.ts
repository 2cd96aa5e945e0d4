import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MongoClient } from 'mongodb';
import { verifyLedger } from '../../src/ledger/verify/verify';
import { connectMongo } from '../../src/mongo';
import { StackFailure } from '../../src/os/failure';
import { createStores, ensureIndexes } from '../../src/store';
import { type Child, startChild } from '../../stack/child-process';
import { lastLines } from '../../stack/log-file';
import { mongoFor } from '../mongo-only';
import type { Setting } from '../servers';
import { makeAuthorized } from './payments';
import { type BookFigures, type BookRun, runOf, WorkerFigures } from './report';

const MANY = 100;
const GRACE_MS = 2_000;

/**
 * Settles payments of one merchant by two workers beside payouts, and then as many of 100 merchants,
 * while the ledger is verified again and again. All that it started or made is gone when it returns.
 * @param broken rejects when the run can't go on
 */
export async function runBookBench(
  { payments, slots }: Pick<Task, 'payments' | 'slots'>,
  setting: Setting,
  broken: Promise<never>,
): Promise<BookFigures> {
  const server = await mongoFor(setting);
  const mongo = await connectMongo(server.uri, 'bench');
  const run = (name: string, merchants: number) =>
    setting.progress.during(name, () =>
      settleAll({ name, merchants, payments, slots }, setting, { uri: server.uri, mongo }),
    );
  try {
    const measuring = async (): Promise<BookFigures> => {
      // The first run finds everything cold, so it does not count.
      await run('warming up', MANY);
      const many = await run(`${MANY} merchants`, MANY);
      const one = await run('one merchant', 1);
      const ratio = one.settlements_per_second / many.settlements_per_second;
      return { runs: [one, many], ratio };
    };
    return await Promise.race([measuring(), broken]);
  } finally {
    await mongo.close();
    await server.stop();
  }
}

interface Task {
  name: string;
  merchants: number;
  payments: number;
  /** Payments that a worker has under way at once. */
  slots: number;
}

async function settleAll(
  { name, merchants, payments, slots }: Task,
  setting: Setting,
  { uri, mongo }: { uri: string; mongo: MongoClient },
): Promise<BookRun> {
  const db = mongo.db(`bench_${process.pid}_book_${merchants}`);
  const workers: Child[] = [];
  try {
    await ensureIndexes(createStores(db));
    await makeAuthorized(db, payments, merchants);
    for (const worker of ['0', '1']) {
      const load = { uri, db: db.databaseName, slots };
      workers.push(await startWorker(worker, setting, load));
    }
    const verified = { verifications: 0, differences: 0 };
    while (workers.some((worker) => !worker.hasExited())) {
      setting.signal.throwIfAborted();
      const { differences_total } = await verifyLedger(mongo, db.databaseName, { full: true });
      verified.verifications += 1;
      verified.differences += differences_total;
    }
    return runOf(
      name,
      await Promise.all(workers.map((worker) => figuresOf(worker, setting))),
      verified,
    );
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await db.dropDatabase();
  }
}

function logOf(name: string, { dir }: Setting): string {
  return join(dir, `${name}.log`);
}

function startWorker(
  number: string,
  setting: Setting,
  { uri, db, slots }: { uri: string; db: string; slots: number },
): Promise<Child> {
  const name = `bench-worker-${number}`;
  return startChild({
    name,
    command: process.execPath,
    args: [join(__dirname, 'worker.js')],
    env: {
      ...setting.env,
      MONGODB_URI: uri,
      MONGODB_DB: db,
      BENCH_WORKER: number,
      BENCH_SLOTS: String(slots),
    },
    logFile: logOf(name, setting),
    graceMs: GRACE_MS,
  });
}

async function figuresOf(worker: Child, setting: Setting): Promise<WorkerFigures> {
  const logFile = logOf(worker.name, setting);
  const [line = ''] = readFileSync(logFile, 'utf8').trim().split('\n').slice(-1);
  const found = line.startsWith('{') ? WorkerFigures.safeParse(JSON.parse(line)) : undefined;
  if (found?.success) return found.data;
  throw new StackFailure(`${worker.name} ${await worker.exited}:\n${lastLines(logFile)}`);
}
