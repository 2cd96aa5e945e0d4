import os from 'node:os';
import { type Db, MongoClient } from 'mongodb';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { mongoFor, timed } from '../mongo-only';
import { type Machine, machine } from '../result';
import type { Setting } from '../servers';
import { type Percentiles, percentiles } from '../statistics';
import { fillLists, timeOf } from './fill';
import { type Plan, planOf } from './plan';
import { QUERIES, type Query } from './queries';

/** Payments of the store that the large one is held against. */
const SMALL = 10_000;
const READS = 300;
const WARM_UP = 30;

/** A list in one store; times in ms. */
interface ListFigures {
  name: string;
  read: Percentiles;
  plan: Plan;
}

interface StoreFigures {
  payments: number;
  fill_seconds: number;
  indexes_seconds: number;
  lists: ListFigures[];
}

/** A list in the large store over the small one. */
interface Ratio {
  name: string;
  p50: number;
  p99: number;
}

export interface ListsResult {
  machine: Machine;
  reads: number;
  small: StoreFigures;
  large: StoreFigures;
  ratios: Ratio[];
}

/**
 * Fills a small store and one of `size` payments, and measures every list in both. All that it
 * started or made is gone when it returns.
 * @param broken rejects when the run can't go on
 */
export async function runListsBench(
  size: number,
  setting: Setting,
  broken: Promise<never>,
): Promise<ListsResult> {
  const server = await mongoFor(setting);
  // Without a time-out, since the indexes of millions of rows take minutes.
  const mongo = await new MongoClient(server.uri, {
    appName: 'bench',
    readConcernLevel: 'majority',
    monitorCommands: true,
    runtimeAdapters: { os },
  }).connect();
  const databases = ['small', 'large'].map((name) => mongo.db(`bench_${process.pid}_${name}`));
  const [small, large] = databases;
  if (small === undefined || large === undefined) throw new RangeError('Two databases.');
  const measuring = async () => {
    const figures = {
      small: await measureStore(mongo, small, SMALL, setting),
      large: await measureStore(mongo, large, size, setting),
    };
    const ratios = figures.large.lists.map(({ name, read }, n) => {
      const before = figures.small.lists[n]?.read;
      return { name, p50: read.p50 / (before?.p50 ?? 0), p99: read.p99 / (before?.p99 ?? 0) };
    });
    return { machine: machine(), reads: READS, ...figures, ratios };
  };
  try {
    return await Promise.race([measuring(), broken]);
  } finally {
    for (const db of databases) await db.dropDatabase();
    await mongo.close();
    await server.stop();
  }
}

async function measureStore(
  mongo: MongoClient,
  db: Db,
  payments: number,
  { progress, signal }: Setting,
): Promise<StoreFigures> {
  const size = { total: payments, until: Date.now() };
  const stores = createStores(db);
  const filling = await timed(() =>
    progress.during(`Filling ${payments} payments`, (task) =>
      fillLists(db, size, task.say, signal),
    ),
  );
  const indexing = await timed(() =>
    progress.during('Making indexes', () => ensureIndexes(stores)),
  );
  const lists: ListFigures[] = [];
  await progress.during(`Reading lists of ${payments}`, async (task) => {
    for (const query of QUERIES) {
      task.say(query.name);
      signal.throwIfAborted();
      const read = await readOften(query, stores, size);
      const plan = await planOf(mongo, db, () => query.read(stores, placeIn(size)));
      lists.push({ name: query.name, read, plan });
    }
  });
  const { seconds: fill_seconds } = filling;
  return { payments, fill_seconds, indexes_seconds: indexing.seconds, lists };
}

async function readOften(
  { read }: Query,
  stores: Stores,
  size: { total: number; until: number },
): Promise<Percentiles> {
  const times: number[] = [];
  for (let n = 0; n < WARM_UP + READS; n += 1) {
    const place = placeIn(size);
    const began = performance.now();
    await read(stores, place);
    if (n >= WARM_UP) times.push(performance.now() - began);
  }
  return percentiles(times);
}

/** Any place in the store; the payment there is the large merchant's, and has refunds. */
function placeIn({ total, until }: { total: number; until: number }) {
  const n = 10 * Math.floor((Math.random() * total) / 10);
  return { n, before: timeOf(n, total, until) };
}
