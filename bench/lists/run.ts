import os from 'node:os';
import { type Db, MongoClient } from 'mongodb';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { mongoFor, timed } from '../mongo-only';
import { type Machine, machine } from '../result';
import type { Setting } from '../servers';
import { mean, type Percentiles, percentiles } from '../statistics';
import { fillLists, timeOf } from './fill';
import { type Plan, planOf } from './plan';
import { QUERIES, type Query } from './queries';

/** Payments of the store that the large one is held against. */
const SMALL = 10_000;
const READS = 500;
const WARM_UP = 30;

const PREFIX = `bench_${process.pid}`;

interface Reads extends Percentiles {
  /** Mean number of rows. */
  rows: number;
}

/** A list in both stores; times in ms. */
interface ListFigures {
  name: string;
  small: Reads;
  large: Reads;
  /** Large over small: of the size alone only where both gave as many rows. */
  ratio: { p50: number; p99: number };
  /** Plan in the large store. */
  plan: Plan;
}

interface Filled {
  payments: number;
  fill_seconds: number;
  indexes_seconds: number;
}

interface Size {
  total: number;
  /** Time of the last payment, ms. */
  until: number;
}

interface Store {
  db: Db;
  stores: Stores;
  size: Size;
  filled: Filled;
}

export interface ListsResult {
  machine: Machine;
  /** Reads of each list in each store. */
  reads: number;
  small: Filled;
  large: Filled;
  lists: ListFigures[];
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
  const dbs = { small: mongo.db(`${PREFIX}_small`), large: mongo.db(`${PREFIX}_large`) };
  const measuring = async (): Promise<ListsResult> => {
    const stores = {
      small: await fillStore(dbs.small, SMALL, setting),
      large: await fillStore(dbs.large, size, setting),
    };
    const lists = await setting.progress.during('Reading lists', async (task) => {
      const figures: ListFigures[] = [];
      for (const query of QUERIES) {
        task.say(query.name);
        figures.push(await measureList(mongo, query, stores, setting.signal));
      }
      return figures;
    });
    const { small, large } = { small: stores.small.filled, large: stores.large.filled };
    return { machine: machine(), reads: READS, small, large, lists };
  };
  try {
    return await Promise.race([measuring(), broken]);
  } finally {
    await Promise.all([dbs.small.dropDatabase(), dbs.large.dropDatabase()]);
    await mongo.close();
    await server.stop();
  }
}

async function fillStore(db: Db, payments: number, { progress, signal }: Setting): Promise<Store> {
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
  const filled = {
    payments,
    fill_seconds: filling.seconds,
    indexes_seconds: indexing.seconds,
  };
  return { db, stores, size, filled };
}

/** Reads a list in both stores in turns, so that other work of the machine falls on both. */
async function measureList(
  mongo: MongoClient,
  { name, read }: Query,
  { small, large }: Record<'small' | 'large', Store>,
  signal: AbortSignal,
): Promise<ListFigures> {
  const reads = { small: blank(), large: blank() };
  const timedRead = async ({ stores, size }: Store) => {
    const place = placeIn(size);
    const began = performance.now();
    const rows = await read(stores, place);
    return { ms: performance.now() - began, rows: rows.length };
  };
  for (let n = 0; n < WARM_UP + READS; n += 1) {
    signal.throwIfAborted();
    const both = { small: await timedRead(small), large: await timedRead(large) };
    if (n < WARM_UP) continue;
    for (const which of ['small', 'large'] as const) {
      reads[which].ms.push(both[which].ms);
      reads[which].rows.push(both[which].rows);
    }
  }
  const [before, after] = [figuresOf(reads.small), figuresOf(reads.large)];
  const plan = await planOf(mongo, large.db, () => read(large.stores, placeIn(large.size)));
  const ratio = { p50: after.p50 / before.p50, p99: after.p99 / before.p99 };
  return { name, small: before, large: after, ratio, plan };
}

function blank(): { ms: number[]; rows: number[] } {
  return { ms: [], rows: [] };
}

function figuresOf({ ms, rows }: { ms: number[]; rows: number[] }): Reads {
  return { ...percentiles(ms), rows: mean(rows) };
}

/** Any place in the store; the payment there is the large merchant's, and has refunds. */
function placeIn({ total, until }: Size) {
  const n = 10 * Math.floor((Math.random() * total) / 10);
  return { n, before: timeOf(n, total, until) };
}
