import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { type Collection, MongoClient } from 'mongodb';
import { connectMongo, inTransaction } from '../../src/mongo';
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

/** Holds a connection for a second. */
const occupy = (rows: Collection<Row>) => rows.find({ $where: 'sleep(1000) || true' }).toArray();

test('a transaction whose commit finds no free connection is committed when there is one', async () => {
  const rows = narrow.db(database).collection<Row>('rows');
  await rows.insertOne({ _id: 'first' });
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
  await seen.updateOne({ _id: 'second' }, { $set: { changed: true } }, { maxTimeMS: 1_000 });
  await other.close();
});
