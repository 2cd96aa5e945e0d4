import os from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import {
  type ClientSession,
  type Db,
  MongoClient,
  MongoError,
  MongoServerError,
  MongoServerSelectionError,
  ReadConcern,
  ReadPreference,
} from 'mongodb';
import { createGate, type Gate } from './gate';
import { foundNoConnection, orAborted } from './mongo-abort';

/**
 * Connects with the durability that money needs: majority, journaled. Time-outs are short: where nobody
 * answers it gives up after four seconds.
 * @param monitorCommands emits each command, to be counted
 * @throws Error when the address has `journal=false`, MongoServerSelectionError when nobody answers
 */
export async function connectMongo(
  uri: string,
  appName: string,
  monitorCommands = false,
): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName,
    monitorCommands,
    writeConcern: { w: 'majority', journal: true },
    readConcernLevel: 'majority',
    // Also where the address asks for others, as those of managed services do.
    readPreference: 'primary',
    retryWrites: true,
    serverSelectionTimeoutMS: 2_000,
    connectTimeoutMS: 2_000,
    socketTimeoutMS: 5_000,
    // Longer than a busy machine takes to open connections, shorter than a request may take.
    waitQueueTimeoutMS: 5_000,
    maxPoolSize: 50,
    // A process that begins under load would otherwise open them two at a time.
    maxConnecting: 10,
    // The driver's own dynamic import of `os` fails under jest's CommonJS.
    runtimeAdapters: { os },
  });
  // The driver lets the address win here.
  if (client.options.writeConcern?.journal === false) {
    throw new Error('MONGODB_URI has journal=false: money needs writes that survive a crash.');
  }
  await client.connect().catch((error: unknown) => {
    if (!(error instanceof MongoServerSelectionError)) throw error;
    // A busy machine may be late with its first answer: it is asked once more.
    return client.connect();
  });
  return client;
}

/**
 * Bound of a transaction; the driver would go on trying for two minutes, long after its caller has
 * given up.
 */
const TRANSACTION_TIMEOUT_MS = 5_000;
/** Less than a socket's time-out, after which the driver would commit again. */
const COMMIT_TIMEOUT_MS = 4_000;
const RETRY_MS = 1_000;
/**
 * Transactions at once: half of the connections, so that one which has begun, and holds rows, never
 * waits behind others that have not.
 */
const TRANSACTIONS_MAX = 25;
const gates = new WeakMap<MongoClient, Gate>();

function gateOf(mongo: MongoClient): Gate {
  const gate = gates.get(mongo) ?? createGate(TRANSACTIONS_MAX);
  gates.set(mongo, gate);
  return gate;
}

/** Error of work that others were in the way of for too long; it may be tried again soon. */
export class Contention extends Error {
  override readonly name = 'Contention';
  /** Time after which to try again. */
  readonly retryMs: number;

  constructor(message: string, retryMs: number) {
    super(message);
    this.retryMs = retryMs;
  }
}

/**
 * Runs a transaction; `work` may run several times, so it holds no effect but its own writes.
 * @throws Contention when it has found no place, or nothing but write conflicts, for 5 seconds;
 * nothing is written
 */
export async function inTransaction<T>(
  mongo: MongoClient,
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  const giveUpAt = Date.now() + TRANSACTION_TIMEOUT_MS;
  const inTime = async (session: ClientSession): Promise<T> => {
    if (Date.now() > giveUpAt) {
      throw new Contention('The transaction met others for 5 seconds.', RETRY_MS);
    }
    return await work(session);
  };
  return await gateOf(mongo)(() => transact(mongo, inTime));
}

/** Runs one transaction, again and again while it meets others. */
async function transact<T>(
  mongo: MongoClient,
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  return await mongo.withSession(async (session) => {
    const kept: { done?: { result: T }; fault?: { error: unknown } } = {};
    const run = async () => {
      delete kept.done;
      try {
        kept.done = { result: await orAborted(mongo, session, () => work(session)) };
      } catch (error) {
        if (beginsAgain(error)) throw error;
        // Aborted already, which the driver would do once more.
        kept.fault = { error };
      }
    };
    try {
      await session.withTransaction(run, {
        readConcern: { level: 'snapshot' },
        writeConcern: { w: 'majority', journal: true },
        readPreference: 'primary',
        // The driver would go on for two minutes while a majority is away.
        maxCommitTimeMS: COMMIT_TIMEOUT_MS,
      });
    } catch (error) {
      if (kept.done === undefined) throw error;
      await commitAgain(session, error, Date.now() + COMMIT_TIMEOUT_MS);
    }
    if (kept.fault !== undefined) throw kept.fault.error;
    if (kept.done === undefined) throw new Error('The transaction ended without its result.');
    return kept.done.result;
  });
}

function beginsAgain(error: unknown): boolean {
  return error instanceof MongoError && error.hasErrorLabel('TransientTransactionError');
}

/**
 * Commits once a connection is free. Left alone, the transaction would hold what it has touched
 * until the server ends it.
 */
async function commitAgain(session: ClientSession, first: unknown, giveUpAt: number) {
  for (let fault = first; ; ) {
    if (!foundNoConnection(fault) || Date.now() > giveUpAt) throw fault;
    try {
      return await session.commitTransaction();
    } catch (error) {
      fault = error;
    }
  }
}

/** Codes of a snapshot that the server no longer has, or not yet: another one will do. */
const PASSING = new Set([239, 246]);
const SNAPSHOTS_MAX = 5;
const SNAPSHOT_RETRY_MS = 200;

/** Reads of one moment. */
export interface Snapshot {
  db: Db;
  session: ClientSession;
}

/** Reads a database as it is at one moment; `work` may run several times. */
export async function inSnapshot<T>(
  mongo: MongoClient,
  database: string,
  work: (snapshot: Snapshot) => Promise<T>,
  readPreference = ReadPreference.primary,
): Promise<T> {
  for (let made = 1; ; made += 1) {
    // The driver notes the moment in the concern itself, so a later snapshot needs one of its own.
    const readConcern = new ReadConcern('snapshot');
    const db = mongo.db(database, { readPreference, readConcern });
    try {
      return await mongo.withSession({ snapshot: true }, (session) => work({ db, session }));
    } catch (error) {
      if (made === SNAPSHOTS_MAX || !isPassing(error)) throw error;
      await wait(SNAPSHOT_RETRY_MS);
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof MongoServerError && PASSING.has(Number(error.code));
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

/**
 * Ends the transaction with nothing written. A read outside it may miss for a moment what it has
 * seen; a transaction that has written nothing is better committed.
 */
export async function abandon(session: ClientSession): Promise<null> {
  await session.abortTransaction();
  return null;
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
