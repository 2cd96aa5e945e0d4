import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { type ClientSession, type Collection, MongoClient, MongoError } from 'mongodb';
import { abandon, connectMongo, inTransaction } from '../../src/base/mongo';
import { openDatabase } from '../../src/base/mongo-reads';
import { retryUntilDone } from '../support/insist';
import { mongodbUri } from '../support/servers';

const database = `test_${randomUUID().slice(0, 8)}`;
interface Row {
  _id: string;
}

/** Two connections, for which nobody waits for long. */
const narrow = new MongoClient(mongodbUri(), {
  maxPoolSize: 2,
  waitQueueTimeoutMS: 100,
  runtimeAdapters: { os },
});

afterAll(async () => {
  await narrow.db(database).dropDatabase();
  await narrow.close();
});

/** Condition that takes 300 ms for each row. */
const SLOW = {
  $function: { body: 'function () { sleep(300); return true; }', args: [], lang: 'js' },
};

/** Holds a connection for half a second: longer than anyone waits for one. */
const occupy = (rows: Collection<Row>) =>
  rows.find({ _id: 'first', $where: 'sleep(500) || true' }).toArray();

/** Less than a transaction lives, and more than a busy machine needs for one write. */
const FREE_MS = 30_000;

/** Rows behind the two connections, which are open from then on, however long the machine takes. */
async function warmRows() {
  const rows = narrow.db(database).collection<Row>('rows');
  await retryUntilDone(() => Promise.all([rows.countDocuments(), rows.countDocuments()]));
  await retryUntilDone(() => rows.updateOne({ _id: 'first' }, { $set: {} }, { upsert: true }));
  return rows;
}

test('a transaction whose commit finds no free connection is committed when there is one', async () => {
  const rows = await warmRows();
  const other = await connectMongo(mongodbUri(), 'transaction-test');
  let runs = 0;
  const busy: Promise<unknown>[] = [];
  const answer = await inTransaction(narrow, async (session) => {
    runs += 1;
    await rows.insertOne({ _id: 'second' }, { session });
    busy.push(occupy(rows), occupy(rows));
    return 'done';
  });
  expect(answer).toBe('done');
  expect(runs).toBe(1);
  await Promise.all(busy);
  const seen = other.db(database).collection<Row>('rows');
  expect(await seen.countDocuments({ _id: 'second' })).toBe(1);
  // Nothing is held any more.
  await seen.updateOne({ _id: 'second' }, { $set: { changed: true } }, { maxTimeMS: FREE_MS });
  await other.close();
});

test.each<[string, string, (session: ClientSession) => Promise<unknown>]>([
  ['fails', 'the work fails', () => Promise.reject(new Error('the work fails'))],
  ['fails in the driver', 'of the driver', () => Promise.reject(new MongoError('of the driver'))],
  ['was given up', 'null', abandon],
])(
  'a transaction that %s is aborted, also when no connection is free for it',
  async (_how, said, end) => {
    const rows = await warmRows();
    const other = await connectMongo(mongodbUri(), 'transaction-test');
    const busy: Promise<unknown>[] = [];
    let runs = 0;
    const ended = inTransaction(narrow, async (session) => {
      runs += 1;
      await rows.insertOne({ _id: said }, { session });
      busy.push(occupy(rows), occupy(rows));
      return await end(session);
    });
    expect(await ended.catch((error: Error) => error.message)).toEqual(
      said === 'null' ? null : said,
    );
    expect(runs).toBe(1);
    // Nothing is held any more.
    const seen = other.db(database).collection<Row>('rows');
    await seen.updateOne({ _id: said }, { $set: {} }, { upsert: true, maxTimeMS: FREE_MS });
    await Promise.all(busy);
    await other.close();
  },
);

test('what a transaction without writes has seen is seen by whoever reads after it', async () => {
  const mongo = await connectMongo(mongodbUri(), 'transaction-test');
  const count = mongo.db(database).collection<Row & { n: number }>('counts');
  await count.insertOne({ _id: 'count', n: 0 });
  const ROUNDS = 100;
  const raise = async () => {
    for (let n = 1; n <= ROUNDS; n += 1) await count.updateOne({ _id: 'count' }, { $set: { n } });
  };
  const follow = async () => {
    for (let n = 0; n < ROUNDS; ) {
      let seen = 0;
      await inTransaction(mongo, async (session) => {
        seen = (await count.findOne({ _id: 'count' }, { session }))?.n ?? 0;
      });
      n = (await count.findOne({ _id: 'count' }))?.n ?? 0;
      expect(n).toBeGreaterThanOrEqual(seen);
    }
  };
  await Promise.all([raise(), follow(), follow()]);
  await mongo.close();
});

test('an address weakens neither what is read nor what is written', async () => {
  const address = (options: string) => {
    const uri = new URL(mongodbUri());
    for (const [name, value] of new URLSearchParams(options)) uri.searchParams.set(name, value);
    return uri.href;
  };
  const weak = address('readPreference=nearest&retryWrites=false&w=1&readConcernLevel=local');
  const mongo = await connectMongo(weak, 'transaction-test');
  const { readPreference, retryWrites, writeConcern, readConcern } = mongo.options;
  await mongo.close();
  expect({ readPreference: readPreference.mode, retryWrites }).toEqual({
    readPreference: 'primary',
    retryWrites: true,
  });
  expect([writeConcern?.w, writeConcern?.journal, readConcern.level]).toEqual([
    'majority',
    true,
    'majority',
  ]);
  const forgetful = connectMongo(address('journal=false'), 'transaction-test');
  await expect(forgetful).rejects.toThrow(/journal=false/);
});

test('the server ends each read of an opened database in time, unless the read asks for longer', async () => {
  await warmRows();
  const rows = openDatabase(narrow, database, 50).collection<Row>('rows');
  const slow = { $where: 'sleep(300) || true' };
  const computed = { $expr: SLOW };
  const reads = [
    () => rows.findOne(slow),
    () => rows.find(slow).toArray(),
    () => rows.countDocuments(computed),
    () => rows.aggregate([{ $match: computed }]).toArray(),
  ];
  // Out of time, or of a function that was stopped.
  const codes = [50, 11_601];
  for (const read of reads) {
    expect(codes).toContain(await read().catch(({ code }: { code: number }) => code));
  }
  expect(await rows.find(slow).maxTimeMS(60_000).toArray()).not.toEqual([]);
});
