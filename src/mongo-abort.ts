import { type ClientSession, type MongoClient, MongoError } from 'mongodb';

/** Time for which an abort is sent again. */
const AGAIN_MS = 4_000;
const refused = new WeakMap<MongoClient, { count: number }>();

/** Count of those who found no connection, which its driver tells only to who listens. */
function refusedOf(mongo: MongoClient): { count: number } {
  const known = refused.get(mongo);
  if (known !== undefined) return known;
  const fresh = { count: 0 };
  mongo.on('connectionCheckOutFailed', () => {
    fresh.count += 1;
  });
  refused.set(mongo, fresh);
  return fresh;
}

/**
 * Runs the work of one transaction, and aborts when it fails. The driver passes over an abort that
 * found no free connection, and the transaction would hold what it has touched until the server ends
 * it: such a one is sent again, as is one that the work has asked for itself.
 */
export async function orAborted<T>(
  mongo: MongoClient,
  session: ClientSession,
  work: () => Promise<T>,
): Promise<T> {
  const found = refusedOf(mongo);
  const before = found.count;
  try {
    return await work();
  } catch (error) {
    if (session.inTransaction()) await session.abortTransaction();
    throw error;
  } finally {
    if (!session.inTransaction() && found.count > before) {
      await abortAgain(mongo, session, Date.now() + AGAIN_MS);
    }
  }
}

/** The server refuses what has ended already, which changes nothing. */
async function abortAgain(mongo: MongoClient, session: ClientSession, giveUpAt: number) {
  while (Date.now() < giveUpAt) {
    try {
      await mongo.db('admin').command({ abortTransaction: 1 }, { session });
      return;
    } catch (error) {
      if (!foundNoConnection(error)) return;
    }
  }
}

/** The driver does not export the error's class. */
export function foundNoConnection(error: unknown): boolean {
  return error instanceof MongoError && error.name === 'MongoWaitQueueTimeoutError';
}
