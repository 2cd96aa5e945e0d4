import { type Document, type FindOptions, type MongoClient, ReadPreference } from 'mongodb';
import { inSnapshot } from '../base/mongo';

/** Least staleness that a driver can bound; far below the margin behind which postings are sealed. */
const STALENESS_SECONDS_MAX = 90;

/** Rows of a find, all from one moment. */
export type Read = <Row extends Document>(
  collection: string,
  filter: Document,
  options?: FindOptions,
) => AsyncIterable<Row>;

/** Runs a short work on one snapshot. */
export type InSnapshot = <T>(work: (read: Read) => Promise<T>) => Promise<T>;

/**
 * Opens snapshots of a database, on a secondary if there is one. Work may run twice, so it holds no
 * effect but its result.
 */
export function openSnapshots(client: MongoClient, database: string): InSnapshot {
  const staleness = { maxStalenessSeconds: STALENESS_SECONDS_MAX };
  const preference = new ReadPreference('secondaryPreferred', undefined, staleness);
  return (work) =>
    inSnapshot(
      client,
      database,
      ({ db, session }) =>
        work(<Row extends Document>(collection: string, filter: Document, options?: FindOptions) =>
          db.collection(collection).find<Row>(filter, {
            ...options,
            session,
            // Sums of money may exceed what a number holds; amounts of resources never do.
            useBigInt64: collection.startsWith('ledger_'),
          }),
        ),
      preference,
    );
}

/** All rows of a find that is bounded. */
export async function readAll<Row>(rows: AsyncIterable<Row>): Promise<Row[]> {
  const result: Row[] = [];
  for await (const row of rows) result.push(row);
  return result;
}
