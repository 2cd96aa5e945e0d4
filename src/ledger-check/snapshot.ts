import { type Document, type FindOptions, type MongoClient, ReadPreference } from 'mongodb';
import { inSnapshot } from '../base/mongo';

/** Least bound of the driver; far below the age at which entries are checkpointed. */
const STALENESS_SECONDS_MAX = 90;

const SUMMED = ['journal_entries', 'entry_states', 'ledger_books'];

export type Read = <Row extends Document>(
  collection: string,
  filter: Document,
  options?: FindOptions,
) => AsyncIterable<Row>;

export type InSnapshot = <T>(work: (read: Read) => Promise<T>) => Promise<T>;

/** Reads from a secondary if there is one. `work` may run twice, so it must only read. */
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
            // Sums need it; amounts of resources always fit a number.
            useBigInt64: SUMMED.includes(collection),
          }),
        ),
      preference,
    );
}

export async function readAll<Row>(rows: AsyncIterable<Row>): Promise<Row[]> {
  const result: Row[] = [];
  for await (const row of rows) result.push(row);
  return result;
}
