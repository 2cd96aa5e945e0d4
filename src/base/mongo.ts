import { setTimeout as wait } from 'node:timers/promises';
import {
  type AggregateOptions,
  type ClientSession,
  type CollectionOptions,
  type Db,
  type Document,
  type Filter,
  type FindOptions,
  MongoClient,
  MongoError,
  MongoServerError,
  MongoServerSelectionError,
  ReadConcern,
  ReadPreference,
} from 'mongodb';
import { createGate, type Gate } from './gate';
import { RUNTIME_ADAPTERS } from './runtime-adapters';

const POOL_MAX = 50;

/**
 * Connects with the durability that money needs; fails after four seconds without a server.
 * @param options.monitorCommands emits an event for each command
 * @throws Error when the URI has `journal=false`, MongoServerSelectionError without a server
 */
export async function connectMongo(
  uri: string,
  appName: string,
  { monitorCommands = false, maxPoolSize = POOL_MAX } = {},
): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName,
    monitorCommands,
    writeConcern: { w: 'majority', journal: true },
    readConcernLevel: 'majority',
    // Overrides the URI: managed services add other preferences.
    readPreference: 'primary',
    retryWrites: true,
    serverSelectionTimeoutMS: 2_000,
    connectTimeoutMS: 2_000,
    socketTimeoutMS: 5_000,
    // Longer than a busy machine needs to connect, shorter than a request's deadline.
    waitQueueTimeoutMS: 5_000,
    maxPoolSize,
    // By default, a process that starts under load opens two at a time.
    maxConnecting: 10,
    runtimeAdapters: RUNTIME_ADAPTERS,
  });
  // The URI overrides this option.
  if (client.options.writeConcern?.journal === false) {
    throw new Error('MONGODB_URI has journal=false: money needs writes that survive a crash.');
  }
  await client.connect().catch((error: unknown) => {
    if (!(error instanceof MongoServerSelectionError)) throw error;
    // A busy machine may miss the first deadline.
    return client.connect();
  });
  return client;
}

/** The driver would retry for two minutes, long after the caller has given up. */
const TRANSACTION_TIMEOUT_MS = 5_000;

/** Shorter than the socket timeout, after which the driver would commit again. */
const COMMIT_TIMEOUT_MS = 4_000;

const RETRY_MS = 1_000;

/** Pauses after write conflicts; the driver's grow to 500 ms. */
const PAUSE_MS_MIN = 5;
const PAUSE_MS_MAX = 100;

/** Gates of transactions. */
const gates = new WeakMap<MongoClient, Gate>();

export class Contention extends Error {
  override readonly name = 'Contention';
  readonly retryMs: number;

  constructor(message: string, retryMs: number) {
    super(message);
    this.retryMs = retryMs;
  }
}

/**
 * Runs a transaction. `work` may run several times, so its only effects are its writes.
 * @throws Contention after 5 seconds of write conflicts; nothing is written
 */
export async function inTransaction<T>(
  mongo: MongoClient,
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  // Half of the connections: a transaction with locks never waits for one behind unstarted ones.
  const atOnce = Math.floor(Math.min(mongo.options.maxPoolSize, POOL_MAX) / 2);
  const gate = gates.get(mongo) ?? createGate(atOnce);
  gates.set(mongo, gate);
  return await gate(() => {
    const giveUpAt = Date.now() + TRANSACTION_TIMEOUT_MS;
    const inTime = async (session: ClientSession) => {
      if (Date.now() <= giveUpAt) return await work(session);
      throw new Contention('The transaction had write conflicts for 5 seconds.', RETRY_MS);
    };
    return mongo.withSession(async (session) => {
      for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(pauseMs * 1.5, PAUSE_MS_MAX)) {
        const outcome = await attempt(mongo, session, inTime);
        if (outcome !== 'conflict') return outcome.result;
        await wait(Math.random() * pauseMs);
      }
    });
  });
}

async function attempt<T>(
  mongo: MongoClient,
  session: ClientSession,
  work: (session: ClientSession) => Promise<T>,
): Promise<{ result: T } | 'conflict'> {
  let outcome: { result: T } | 'conflict' | { error: unknown } | undefined;
  const run = async () => {
    outcome = undefined;
    try {
      outcome = { result: await abortOnError(mongo, session, () => work(session)) };
    } catch (error) {
      // It is aborted already; rethrowing would make the driver abort again.
      const isTransient =
        error instanceof MongoError && error.hasErrorLabel('TransientTransactionError');
      outcome = isTransient ? 'conflict' : { error };
    }
  };
  try {
    await session.withTransaction(run, {
      readConcern: { level: 'snapshot' },
      writeConcern: { w: 'majority', journal: true },
      readPreference: 'primary',
      // Without a majority, the driver would retry for two minutes.
      maxCommitTimeMS: COMMIT_TIMEOUT_MS,
    });
  } catch (error) {
    if (outcome === undefined || outcome === 'conflict' || 'error' in outcome) throw error;
    await retryCommit(session, error, Date.now() + COMMIT_TIMEOUT_MS);
  }
  if (outcome === undefined) throw new Error('The transaction ended without its result.');
  if (outcome !== 'conflict' && 'error' in outcome) throw outcome.error;
  return outcome;
}

/** Commits as soon as a connection is free, since the transaction holds locks. */
async function retryCommit(session: ClientSession, first: unknown, giveUpAt: number) {
  for (let fault = first; ; ) {
    if (!isCheckoutTimeout(fault) || Date.now() > giveUpAt) throw fault;
    try {
      return await session.commitTransaction();
    } catch (error) {
      fault = error;
    }
  }
}

const STALE_SNAPSHOT_CODES = new Set([239, 246]);

const SNAPSHOTS_MAX = 5;
const SNAPSHOT_RETRY_MS = 200;

interface Snapshot {
  db: Db;
  session: ClientSession;
}

/** Reads at one point in time; `work` may run several times. */
export async function inSnapshot<T>(
  mongo: MongoClient,
  database: string,
  work: (snapshot: Snapshot) => Promise<T>,
  readPreference = ReadPreference.primary,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    // The driver stores the time in the concern, so each snapshot needs a new one.
    const readConcern = new ReadConcern('snapshot');
    const db = mongo.db(database, { readPreference, readConcern });
    try {
      return await mongo.withSession({ snapshot: true }, (session) => work({ db, session }));
    } catch (error) {
      const isStale =
        error instanceof MongoServerError && STALE_SNAPSHOT_CODES.has(Number(error.code));
      if (attempt === SNAPSHOTS_MAX || !isStale) throw error;
      await wait(SNAPSHOT_RETRY_MS);
    }
  }
}

/** Seconds for which a killed process's transaction keeps its locks; undefined if unknown. */
export async function readTransactionLifetime(mongo: MongoClient): Promise<number | undefined> {
  const command = { getParameter: 1, transactionLifetimeLimitSeconds: 1 };
  try {
    const response = await mongo.db('admin').command(command);
    const seconds: unknown = response['transactionLifetimeLimitSeconds'];
    return typeof seconds === 'number' ? seconds : undefined;
  } catch {
    // A managed server may refuse the command.
    return undefined;
  }
}

/**
 * Aborts. After a mere read, commit instead: a later read outside may not see the same data yet.
 */
export async function abandon(session: ClientSession): Promise<null> {
  await session.abortTransaction();
  return null;
}

export function isNotAuthorized(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 13;
}

/** @param index start of the unique index's name */
export function isDuplicateKey(error: unknown, index = ''): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === 11000 &&
    error.message.includes(`index: ${index}`)
  );
}

const ABORT_RETRY_MS = 4_000;
const failedCheckouts = new WeakMap<MongoClient, { count: number }>();

function getFailedCheckouts(mongo: MongoClient): { count: number } {
  const existing = failedCheckouts.get(mongo);
  if (existing !== undefined) return existing;
  const counter = { count: 0 };
  mongo.on('connectionCheckOutFailed', () => {
    counter.count += 1;
  });
  failedCheckouts.set(mongo, counter);
  return counter;
}

/**
 * Aborts when the work of a transaction fails. The driver ignores an abort that found no free
 * connection, so it is sent again, also one of the work itself: the server would hold the locks for
 * 84 s (measured) instead of 15 ms.
 */
async function abortOnError<T>(
  mongo: MongoClient,
  session: ClientSession,
  work: () => Promise<T>,
): Promise<T> {
  const failures = getFailedCheckouts(mongo);
  const before = failures.count;
  try {
    return await work();
  } catch (error) {
    if (session.inTransaction()) await session.abortTransaction();
    throw error;
  } finally {
    const giveUpAt = Date.now() + ABORT_RETRY_MS;
    let isUnsent = !session.inTransaction() && failures.count > before;
    while (isUnsent && Date.now() < giveUpAt) {
      isUnsent = await mongo
        .db('admin')
        .command({ abortTransaction: 1 }, { session })
        .then(() => false, isCheckoutTimeout);
    }
  }
}

/** The driver does not export the error's class. */
function isCheckoutTimeout(error: unknown): boolean {
  return error instanceof MongoError && error.name === 'MongoWaitQueueTimeoutError';
}

/**
 * Makes the server end each read after a time, since the driver gives a read up without stopping
 * it. A read may set its own `maxTimeMS`.
 */
export function openDatabase(mongo: MongoClient, name: string, maxTimeMS: number): Db {
  const db = mongo.db(name);
  const open = db.collection.bind(db);
  return Object.assign(db, {
    collection: (of: string, options?: CollectionOptions) => {
      const rows = open(of, options);
      const find = rows.find.bind(rows);
      const aggregate = rows.aggregate.bind(rows);
      // `findOne` and `countDocuments` call these.
      return Object.assign(rows, {
        find: (filter: Filter<Document> = {}, more: FindOptions = {}) =>
          // As an option it would prevail over a later call of the cursor's `maxTimeMS`.
          find(filter, more).maxTimeMS(more.maxTimeMS ?? maxTimeMS),
        aggregate: (pipeline: Document[] = [], more: AggregateOptions = {}) =>
          aggregate(pipeline, { maxTimeMS, ...more }),
      });
    },
  });
}

const LONG_CONNECT_MS = 2_500;

/** Server keeps a snapshot for five minutes. */
const LONG_READ_MS = 300_000;

export function connectLongReader(uri: string, appName: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName,
    serverSelectionTimeoutMS: LONG_CONNECT_MS,
    connectTimeoutMS: LONG_CONNECT_MS,
    socketTimeoutMS: LONG_READ_MS,
    runtimeAdapters: RUNTIME_ADAPTERS,
  });
  return client.connect();
}
