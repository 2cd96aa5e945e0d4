import { mkdirSync } from 'node:fs';
import os from 'node:os';
import { type Document, MongoClient, MongoServerError } from 'mongodb';
import { type Child, startChild, waitUntilUp } from './child-process';
import { LOOPBACK, needPortFor } from './ports';

const REPLICA_SET = 'payments';
const UP_MS_MAX = 60_000;
const STOP_MS_MAX = 6_000;
const CALL_MS_MAX = 2_000;
const ALREADY_INITIALIZED = 23;

/**
 * Longest life of a transaction. One of a killed process blocks the documents that it wrote until
 * the server ends it; by default a merchant's balance would stand still for a minute.
 */
const TRANSACTION_SECONDS_MAX = 3;

export interface MongoOptions {
  /** The mongod executable. */
  executable: string;
  /** Data folder; made when missing, kept over restarts. */
  dbPath: string;
  port: number;
  logFile: string;
  /** Stops the wait for it to come up, and ends it. */
  signal?: AbortSignal;
  /** Gigabytes of memory for the storage engine, which by default takes half the machine. */
  cacheGb?: number;
}

export interface MongoServer extends Child {
  uri: string;
}

/** Address of the server that `startMongo` makes on that port. */
export function mongoUri(port: number): string {
  return `mongodb://${LOOPBACK}:${port}/?replicaSet=${REPLICA_SET}`;
}

/**
 * Starts a MongoDB replica set of one node (transactions need one), journaled, reachable from
 * this machine only. Resolves once it is primary and takes writes.
 * @throws StackFailure with the end of its log when it does not come up.
 */
export async function startMongo(options: MongoOptions): Promise<MongoServer> {
  await needPortFor('MongoDB', options.port);
  mkdirSync(options.dbPath, { recursive: true });
  const child = await startChild({
    name: 'MongoDB',
    command: options.executable,
    args: [
      ...['--dbpath', options.dbPath, '--port', String(options.port), '--bind_ip', LOOPBACK],
      ...['--replSet', REPLICA_SET, '--storageEngine', 'wiredTiger'],
      ...['--wiredTigerCacheSizeGB', String(options.cacheGb ?? 1), '--nounixsocket'],
      ...['--oplogSize', '1024'],
      ...['--setParameter', `transactionLifetimeLimitSeconds=${TRANSACTION_SECONDS_MAX}`],
    ],
    logFile: options.logFile,
    graceMs: STOP_MS_MAX,
  });
  try {
    const { logFile, port, signal } = options;
    await waitUntilUp(child, logFile, UP_MS_MAX, () => becomePrimary(port), signal);
  } catch (error) {
    await child.stop();
    throw error;
  }
  return { ...child, uri: mongoUri(options.port) };
}

/** @throws while the node is not yet primary. */
async function becomePrimary(port: number): Promise<void> {
  const client = new MongoClient(`mongodb://${LOOPBACK}:${port}/?directConnection=true`, {
    serverSelectionTimeoutMS: CALL_MS_MAX,
    connectTimeoutMS: CALL_MS_MAX,
    socketTimeoutMS: CALL_MS_MAX * 5,
    // The driver's own dynamic import of `os` fails under jest's CommonJS.
    runtimeAdapters: { os },
  });
  try {
    const admin = client.db('admin');
    const hello: Document = await admin.command({ hello: 1 });
    if (hello['isWritablePrimary'] === true) return;
    if (hello['setName'] === undefined) await initiate(client, port);
    throw new Error('it is not primary yet');
  } finally {
    await client.close();
  }
}

async function initiate(client: MongoClient, port: number): Promise<void> {
  const admin = client.db('admin');
  const members = [{ _id: 0, host: `${LOOPBACK}:${port}` }];
  try {
    await admin.command({ replSetInitiate: { _id: REPLICA_SET, members } });
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code !== ALREADY_INITIALIZED) throw error;
    // The set of an earlier start may know this node by another port.
    const { config } = await admin.command({ replSetGetConfig: 1 });
    if (config.members[0]?.host === members[0]?.host) return;
    const moved = { ...config, version: config.version + 1, members };
    await admin.command({ replSetReconfig: moved, force: true });
  }
}
