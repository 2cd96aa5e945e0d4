import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ClientSession, type Collection, MongoClient, MongoError } from 'mongodb';
import { abandon, connectMongo, inTransaction } from '../../src/base/mongo';
import { connectToBuild, makeIndexes } from '../../src/base/mongo-indexes';
import { openDatabase } from '../../src/base/mongo-reads';
import { useFixture } from '../support/fixture';
import { retryUntilDone } from '../support/insist';
import { mongodbUri } from '../support/servers';

const name = `test_${randomUUID().slice(0, 8)}`;
interface Row {
  _id: string;
}

/** Two connections, for which nobody waits for long. */
const narrow = new MongoClient(mongodbUri(), {
  maxPoolSize: 2,
  waitQueueTimeoutMS: 100,
  runtimeAdapters: { os },
});
const wide = useFixture(
  async () => ({ mongo: await connectMongo(mongodbUri(), 'transaction-test') }),
  ({ mongo }) => mongo.close(),
);

afterAll(async () => {
  await narrow.db(name).dropDatabase();
  await narrow.close();
});

/** Opens both connections, however long the machine takes. @returns rows behind them */
async function openRows() {
  const rows = narrow.db(name).collection<Row>('rows');
  await retryUntilDone(() => Promise.all([rows.countDocuments(), rows.countDocuments()]));
  await retryUntilDone(() => rows.updateOne({ _id: 'first' }, { $set: {} }, { upsert: true }));
  return rows;
}

/** Occupies a connection for half a second: longer than anyone waits for one. */
const occupy = (rows: Collection<Row>) =>
  rows.find({ _id: 'first', $where: 'sleep(500) || true' }).toArray();

/** Less than a transaction may last, and more than a busy machine needs for one write. */
const FREE_MS = 30_000;

describe('a transaction', () => {
  const FAULT = new Error('the work fails');
  const OF_DRIVER = new MongoError('of the driver');

  test.each<[string, unknown, (session: ClientSession) => Promise<unknown>]>([
    ['succeeds is committed', 'done', async () => 'done'],
    ['fails is aborted', FAULT, () => Promise.reject(FAULT)],
    ['fails in the driver is aborted', OF_DRIVER, () => Promise.reject(OF_DRIVER)],
    ['is abandoned is aborted', null, abandon],
  ])('that %s once, also when it waits for a free connection', async (_how, result, end) => {
    const rows = await openRows();
    const _id = randomUUID();
    const busy: Promise<unknown>[] = [];
    let runs = 0;
    const ended = inTransaction(narrow, async (session) => {
      runs += 1;
      await rows.insertOne({ _id }, { session });
      busy.push(occupy(rows), occupy(rows));
      return await end(session);
    });
    expect(await ended.catch((error: unknown) => error)).toEqual(result);
    expect(runs).toBe(1);
    const stored = wide.mongo.db(name).collection<Row>('rows');
    const update = { $set: { changed: true } };
    const { upsertedCount } = await stored.updateOne({ _id }, update, {
      ...{ upsert: true, maxTimeMS: FREE_MS },
    });
    expect(upsertedCount).toBe(result === 'done' ? 0 : 1);
    await Promise.all(busy);
  });

  test('without writes reads nothing that a later read does not see', async () => {
    const ROUNDS = 100;
    const count = wide.mongo.db(name).collection<Row & { n: number }>('counts');
    await count.insertOne({ _id: 'count', n: 0 });
    const increase = async () => {
      for (let n = 1; n <= ROUNDS; n += 1) await count.updateOne({ _id: 'count' }, { $set: { n } });
    };
    const follow = async () => {
      for (let n = 0; n < ROUNDS; ) {
        let seen = 0;
        await inTransaction(wide.mongo, async (session) => {
          seen = (await count.findOne({ _id: 'count' }, { session }))?.n ?? 0;
        });
        n = (await count.findOne({ _id: 'count' }))?.n ?? 0;
        expect(n).toBeGreaterThanOrEqual(seen);
      }
    };
    await Promise.all([increase(), follow(), follow()]);
  });
});

test('an address weakens neither reads nor writes', async () => {
  const buildAddress = (options: string) => {
    const uri = new URL(mongodbUri());
    for (const [option, value] of new URLSearchParams(options)) uri.searchParams.set(option, value);
    return uri.href;
  };
  const weak = 'readPreference=nearest&retryWrites=false&w=1&readConcernLevel=local';
  const mongo = await connectMongo(buildAddress(weak), 'transaction-test');
  const { readPreference, retryWrites, writeConcern, readConcern } = mongo.options;
  await mongo.close();
  expect([readPreference.mode, retryWrites, readConcern.level]).toEqual([
    ...['primary', true, 'majority'],
  ]);
  expect([writeConcern?.w, writeConcern?.journal]).toEqual(['majority', true]);
  const unsafe = connectMongo(buildAddress('journal=false'), 'transaction-test');
  await expect(unsafe).rejects.toThrow(/journal=false/);
});

test('the server ends each read of an opened database in time, unless the read allows longer', async () => {
  await openRows();
  const rows = openDatabase(narrow, name, 50).collection<Row>('rows');
  const slow = { $where: 'sleep(300) || true' };
  const body = 'function () { sleep(300); return true; }';
  const computed = { $expr: { $function: { body, args: [], lang: 'js' } } };
  const reads = [
    () => rows.findOne(slow),
    () => rows.find(slow).toArray(),
    () => rows.countDocuments(computed),
    () => rows.aggregate([{ $match: computed }]).toArray(),
  ];
  // Codes of a read that is out of time, and of a function that was stopped.
  const codes = [50, 11_601];
  for (const read of reads) {
    expect(codes).toContain(await read().catch(({ code }: { code: number }) => code));
  }
  expect(await rows.find(slow).maxTimeMS(60_000).toArray()).not.toEqual([]);
});

describe('an index', () => {
  const SOCKET_MS = 400;
  const UNIQUE = { key: { token: 1 }, name: 'token', unique: true } as const;
  const PLAIN = { key: { status: 1 }, name: 'status' } as const;

  test('is waited for when its build outlasts the time-out of sockets', async () => {
    // The server may end the transaction for its age on a busy machine: then the next one counts.
    for (const nth of [1, 2, 3, 4, 5]) {
      const collection = wide.mongo.db(name).collection(`slow-${nth}`);
      await collection.insertOne({ token: 'stored' });
      const patient = await connectToBuild(`${mongodbUri()}&socketTimeoutMS=${SOCKET_MS}`);
      // No build of the collection begins while a transaction has written to it.
      const session = wide.mongo.startSession();
      session.startTransaction();
      await collection.insertOne({ token: 'held' }, { session });
      const building = makeIndexes(patient.db(name).collection(`slow-${nth}`), [UNIQUE]);
      await sleep(2 * SOCKET_MS);
      const isHeld = await session.commitTransaction().then(
        () => true,
        () => false,
      );
      await session.endSession();
      await building;
      await patient.close();
      expect((await collection.indexes()).map((index) => index.name)).toEqual(['_id_', 'token']);
      if (isHeld) return;
    }
    throw new Error('The server ended each transaction for its age.');
  });

  test('of the same name with other keys is refused', async () => {
    const collection = wide.mongo.db(name).collection('differs');
    await makeIndexes(collection, [PLAIN]);
    const other = { key: { status: 1, token: 1 }, name: 'status' } as const;
    await expect(makeIndexes(collection, [other])).rejects.toThrow(/same name/);
  });
});
