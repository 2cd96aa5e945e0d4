import os from 'node:os';
import { type ClientSession, MongoClient } from 'mongodb';

/** Connects with the durability that money needs: majority, journaled. Time-outs are short. */
export async function connectMongo(uri: string, appName: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName,
    writeConcern: { w: 'majority', journal: true },
    readConcernLevel: 'majority',
    serverSelectionTimeoutMS: 2_000,
    connectTimeoutMS: 2_000,
    socketTimeoutMS: 5_000,
    waitQueueTimeoutMS: 2_000,
    maxPoolSize: 50,
    // The driver's own dynamic import of `os` fails under jest's CommonJS.
    runtimeAdapters: { os },
  });
  await client.connect();
  return client;
}

/**
 * Bound of a transaction; the driver would go on trying for two minutes, long after its caller has
 * given up.
 */
const TRANSACTION_TIMEOUT_MS = 5_000;
/** Less than a socket's time-out, after which the driver would commit again. */
const COMMIT_TIMEOUT_MS = 4_000;
const NO_TURN = 'The transaction found no turn in 5 seconds.';

/**
 * Runs a transaction; `work` may run several times, so it holds no effect but its own writes.
 * @param turn Transactions of this process with the same `turn`, such as a book of the ledger, run
 *   one after the other. In parallel, MongoDB would abort all but one of them (write conflict) and
 *   each would start again.
 * @throws Error when its turn has not come for 5 seconds, at that moment; nothing is written then
 */
export async function inTransaction<T>(
  mongo: MongoClient,
  work: (session: ClientSession) => Promise<T>,
  turn?: string,
): Promise<T> {
  const giveUpAt = Date.now() + TRANSACTION_TIMEOUT_MS;
  const inTime = async (session: ClientSession): Promise<T> => {
    if (Date.now() > giveUpAt) throw new Error(NO_TURN);
    return await work(session);
  };
  const transact = () =>
    mongo.withSession((session) =>
      session.withTransaction(() => inTime(session), {
        readConcern: { level: 'snapshot' },
        writeConcern: { w: 'majority', journal: true },
        readPreference: 'primary',
        // The driver would hold the turn for two minutes while a majority is away.
        maxCommitTimeMS: COMMIT_TIMEOUT_MS,
      }),
    );
  return await (turn === undefined ? transact() : turns(turn, giveUpAt, transact));
}

/**
 * Seconds that the server lets a transaction live whose process was killed: for so long it holds what
 * it has touched. Undefined where the server does not say.
 */
export async function transactionLifetime(mongo: MongoClient): Promise<number | undefined> {
  const command = { getParameter: 1, transactionLifetimeLimitSeconds: 1 };
  try {
    const said = await mongo.db('admin').command(command);
    const seconds: unknown = said['transactionLifetimeLimitSeconds'];
    return typeof seconds === 'number' ? seconds : undefined;
  } catch {
    // A managed server may refuse to tell.
    return undefined;
  }
}

/** Ends the transaction with nothing written. */
export async function abandon(session: ClientSession): Promise<null> {
  await session.abortTransaction();
  return null;
}

const turns = createTurns();

/** Runs work with the same key one after the other, in the order of asking. */
function createTurns() {
  const last = new Map<string, Promise<unknown>>();
  return async <T>(key: string, giveUpAt: number, run: () => Promise<T>): Promise<T> => {
    let begun = false;
    const begin = () => {
      begun = true;
      return run();
    };
    const mine = (last.get(key) ?? Promise.resolve()).then(begin, begin);
    last.set(key, mine);
    const forget = () => {
      if (last.get(key) === mine) last.delete(key);
    };
    mine.then(forget, forget);
    return await unlessLate(mine, giveUpAt, () => begun);
  };
}

/**
 * Gives up work that has not begun when its time is over, while others have the turn; once the turn
 * comes it sees that itself, and writes nothing.
 */
async function unlessLate<T>(
  work: Promise<T>,
  giveUpAt: number,
  hasBegun: () => boolean,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const giveUp = () => {
      if (!hasBegun()) reject(new Error(NO_TURN));
    };
    timer = setTimeout(giveUp, Math.max(0, giveUpAt - Date.now()));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether an insert or update broke the unique index whose name starts with `index`. */
export function isDuplicateKey(error: unknown, index = ''): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === 11000 &&
    error.message.includes(`index: ${index}`)
  );
}
