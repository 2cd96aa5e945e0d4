import type { Db, Document } from 'mongodb';

export type Dump = Awaited<ReturnType<typeof dumpDatabase>>;

export async function dumpDatabase(db: Db) {
  const names = (await db.listCollections().toArray()).map(({ name }) => name);
  const rows = await Promise.all(
    names.map(async (name) => [name, await db.collection(name).find().toArray()] as const),
  );
  return new Map<string, Document[]>(rows);
}

const COUNTS = 'send_counts';

/** Puts a database back to what it was, with its indexes, also while processes use it. */
export async function restoreDatabase(db: Db, dump: Dump): Promise<void> {
  const names = (await db.listCollections().toArray()).map(({ name }) => name);
  // The count last: a connector that compares meanwhile finds what it has sent before a mere difference of counts.
  const inOrder = names.toSorted((a, b) => Number(a === COUNTS) - Number(b === COUNTS));
  for (const name of inOrder) {
    const rows = dump.get(name) ?? [];
    const collection = db.collection(name);
    await collection.deleteMany({ _id: { $nin: rows.map(({ _id }) => _id) } });
    for (const row of rows) await collection.replaceOne({ _id: row['_id'] }, row, { upsert: true });
  }
}
