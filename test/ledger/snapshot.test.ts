import { randomUUID } from 'node:crypto';
import { connectMongo } from '../../src/base/mongo';
import { openSnapshots, readAll } from '../../src/ledger-check/snapshot';
import { mongodbUri } from '../support/servers';

test('each snapshot is of its own moment, and all reads in it are of that one', async () => {
  const mongo = await connectMongo(mongodbUri(), 'snapshot-test');
  const database = `test_${randomUUID().slice(0, 8)}`;
  const rows = mongo.db(database).collection('rows');
  const inSnapshot = openSnapshots(mongo, database);
  const counts = () =>
    inSnapshot(async (read) => {
      const before = await readAll(read('rows', {}));
      await rows.insertOne({});
      const after = await readAll(read('rows', {}));
      return [before.length, after.length];
    });
  await rows.insertOne({});
  expect(await counts()).toEqual([1, 1]);
  expect(await counts()).toEqual([2, 2]);
  await mongo.db(database).dropDatabase();
  await mongo.close();
});
