import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import { type TaskQueues, taskQueues } from '../domain/task-queues';
import type { Sealer } from '../keys/seal';
import { createStores, type Stores } from '../store';
import { type Audit, auditBy } from '../store/audit';
import {
  openIndexBuilder,
  openLongReader,
  openMongo,
  openSealer,
  openTemporal,
} from './connections';
import { readSettings, type Settings } from './settings';
import { type SystemUser, systemUser } from './system-user';

/** Environment and streams of a run. */
export interface CliIo {
  env: NodeJS.ProcessEnv;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
}

/** Answer of a command: the document of `--json`, and its text for a person. */
interface Answer {
  json: unknown;
  text: string;
}

/** Dependencies of acts that leave a line in the audit log. */
interface Acting {
  mongo: MongoClient;
  stores: Stores;
  audit: Audit;
  now: () => Date;
  me: SystemUser;
}

/** Dependencies of commands; a server is connected to when the first one asks. */
export interface CliContext {
  settings: () => Settings;
  /** Client for transactions; every other command uses the stores. */
  mongo: () => Promise<MongoClient>;
  /** Client for reads that take long. */
  longReader: () => Promise<MongoClient>;
  /** Client that waits for builds of indexes. */
  indexBuilder: () => Promise<MongoClient>;
  stores: () => Promise<Stores>;
  acting: () => Promise<Acting>;
  temporal: () => Promise<Client>;
  queues: () => TaskQueues;
  sealer: () => Sealer;
  now: () => Date;
  /** Tells a waiting person how far a long command is; scripts are not told. */
  progress: (line: string) => void;
  print: (answer: Answer) => void;
}

/** Makes the context of one run; `close` ends the connections that it opened. */
export function createContext(
  io: CliIo,
  isJson: boolean,
): { context: CliContext; close: () => Promise<void> } {
  const settings = once(() => readSettings(io.env));
  const clients: MongoClient[] = [];
  let temporal: Client | undefined;
  const client = (open: (settings: Settings) => Promise<MongoClient>) =>
    once(async () => {
      const opened = await open(settings());
      clients.push(opened);
      return opened;
    });
  const mongo = client(openMongo);
  const context: CliContext = {
    settings,
    mongo,
    longReader: client(openLongReader),
    indexBuilder: client(openIndexBuilder),
    stores: once(async () => createStores((await mongo()).db(settings().mongodb.db))),
    acting: async () => {
      const stores = await context.stores();
      const { now } = context;
      // Before the service has ever run, nothing else would have made these collections.
      const { auditLog, keys, connectorKeys } = stores;
      await Promise.all([auditLog, keys, connectorKeys].map((store) => store.ensureIndexes()));
      const me = systemUser();
      return { mongo: await mongo(), stores, now, audit: auditBy({ stores, now }, me), me };
    },
    temporal: once(async () => {
      temporal = await openTemporal(settings());
      return temporal;
    }),
    queues: () => taskQueues(settings().taskQueuePrefix),
    sealer: once(() => openSealer(settings())),
    now: () => new Date(),
    progress: (line) => {
      if (!isJson) io.stderr(`${line}\n`);
    },
    print: ({ json, text }) => io.stdout(`${isJson ? JSON.stringify(json, null, 2) : text}\n`),
  };
  const close = async (): Promise<void> => {
    await Promise.allSettled([...clients.map((one) => one.close()), temporal?.connection.close()]);
  };
  return { context, close };
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
