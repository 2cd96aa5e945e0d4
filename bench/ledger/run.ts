import os from 'node:os';
import { type Db, MongoClient } from 'mongodb';
import { z } from 'zod';
import { createStores, ensureIndexes } from '../../src/store';
import { runCli } from '../cli-run';
import { mongoFor, timed } from '../mongo-only';
import type { Setting } from '../servers';
import { createFill } from './fill';

const NAME_WIDTH = 42;
const COLUMN_WIDTH = 17;
/** Postings that come between the first verification and the next one, by all of them. */
const ADDED_SHARE = 0.01;

const Verified = z.object({
  data: z.object({
    books: z.number(),
    postings: z.number(),
    differences_total: z.literal(0),
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
  const server = await mongoFor(setting);
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
  const env = { MONGODB_URI: uri, MONGODB_DB: db.databaseName, DATA_DIR: setting.dir };
  const verify = async (name: string, ...options: string[]): Promise<VerifyFigures> => {
    const run = () =>
      runCli(['ledger', 'verify', ...options], Verified, { ...setting.env, ...env }, setting);
    const { answer, seconds, rss_mib } = await progress.during(name, run);
    const { books, postings, checkpoints_sealed } = answer.data;
    return { name, books, postings, checkpoints_sealed, seconds, rss_mib };
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
