import { openSnapshots, readAll } from '../../src/ledger-check/snapshot';
import { useDatabase } from '../support/database';

const database = useDatabase({ indexed: false });

test('each snapshot is of its own moment, and all reads in it are of that one', async () => {
  const { mongo, db } = database;
  const rows = db.collection('rows');
  const inSnapshot = openSnapshots(mongo, db.databaseName);
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
});
