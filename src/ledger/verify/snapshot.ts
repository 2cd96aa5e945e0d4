import {
  type Document,
  type FindOptions,
  type MongoClient,
  MongoServerError,
  ReadConcern,
  ReadPreference,
} from 'mongodb';

/** Codes of a snapshot that the server no longer has, or not yet: another one will do. */
const PASSING = new Set([239, 246]);
const ATTEMPTS_MAX = 5;
const RETRY_MS = 200;
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
export function snapshotsOf(client: MongoClient, database: string): InSnapshot {
  const near = { maxStalenessSeconds: STALENESS_SECONDS_MAX };
  const db = client.db(database, {
    readPreference: new ReadPreference('secondaryPreferred', undefined, near),
    // A client that asks for majority would have each read see a moment of its own.
    readConcern: new ReadConcern('snapshot'),
  });
  const attempt = <T>(work: (read: Read) => Promise<T>) =>
    client.withSession({ snapshot: true }, (session) =>
      work(<Row extends Document>(collection: string, filter: Document, options?: FindOptions) =>
        db.collection(collection).find<Row>(filter, {
          ...options,
          session,
          // Sums of money may exceed what a number holds; amounts of resources never do.
          useBigInt64: collection.startsWith('ledger_'),
        }),
      ),
    );
  return async (work) => {
    for (let made = 1; ; made += 1) {
      try {
        return await attempt(work);
      } catch (error) {
        if (made === ATTEMPTS_MAX || !isPassing(error)) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  };
}

function isPassing(error: unknown): boolean {
  return error instanceof MongoServerError && PASSING.has(Number(error.code));
}

/** All rows of a find that is bounded. */
export async function all<Row>(rows: AsyncIterable<Row>): Promise<Row[]> {
  const found: Row[] = [];
  for await (const row of rows) found.push(row);
  return found;
}
