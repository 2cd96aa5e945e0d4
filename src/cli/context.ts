import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import { connectLongReader, connectMongo } from '../base/mongo';
import { connectToBuild } from '../base/mongo-indexes';
import { type Env, isLive } from '../domain/environment';
import { formatJson, sanitize, sanitizeLines } from '../domain/printable';
import { type TaskQueues, taskQueues } from '../domain/task-queues';
import { createEncrypter, type Encrypter } from '../encryption/encrypter';
import { warnOfReaders } from '../encryption/key-file';
import { followKeyFile } from '../encryption/service-keys';
import type { Owner, WriteDeps } from '../service/access';
import type { CheckConnector } from '../service/banks/connector-check';
import { checkDatabaseFormat } from '../service/installation/epoch';
import { findAccount } from '../service/merchants/accounts';
import { createOperatorDeps, createReadDeps, type ReadDeps } from '../service/operators/deps';
import type { OpenRebuilder } from '../service/operators/reconcile/reconcile';
import { createTemporalEpoch } from '../temporal/epoch';
import { VARIABLES } from '../variables';
import { findKeysFile, openMongo, openTemporal } from './connections';
import { readSettings, type Settings } from './settings';

export interface CliIo {
  env: NodeJS.ProcessEnv;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
}

interface TemporalDeps extends TaskQueues {
  temporal: Client;
}

/** Connects on first use. */
export interface CliContext {
  settings: () => Settings;
  operatorKey: string | undefined;
  longReader: () => Promise<MongoClient>;
  indexBuilder: () => Promise<MongoClient>;
  readDeps: () => Promise<ReadDeps>;
  actingDeps: () => Promise<WriteDeps>;
  withTemporal: <Deps extends ReadDeps>(deps: Deps) => Promise<Deps & TemporalDeps>;
  temporal: () => Promise<Client>;
  /** @throws ServiceError */
  keysFile: () => string;
  encrypter: () => Encrypter;
  openRebuilder: OpenRebuilder;
  checkConnector: CheckConnector;
  now: () => Date;
  isJson: boolean;
  /** Prints nothing with `--json`. */
  progress: (line: string) => void;
  print: (output: { json: unknown; text: string }) => void;
}

/** Modules that src must not import, loaded on demand. */
export type Loads = Pick<CliContext, 'openRebuilder' | 'checkConnector'>;

export function createContext(
  io: CliIo,
  isJson: boolean,
  loads: Loads,
): { context: CliContext; close: () => Promise<void> } {
  const settings = memoize(() => readSettings(io.env));
  const clients: MongoClient[] = [];
  let temporal: Client | undefined;
  const client = (connect: Parameters<typeof openMongo>[1]) =>
    memoize(async () => {
      const connection = await openMongo(settings(), connect);
      clients.push(connection);
      await checkDatabaseFormat(connection.db(settings().mongodb.db));
      return connection;
    });
  const mongo = client(connectMongo);
  const operatorKey = VARIABLES.shape.OPERATOR_KEY.parse(io.env['OPERATOR_KEY']) || undefined;
  const context: CliContext = {
    settings,
    operatorKey,
    longReader: client(connectLongReader),
    indexBuilder: client(connectToBuild),
    readDeps: memoize(async () => {
      const { mongodb, keysDir } = settings();
      return createReadDeps(await mongo(), mongodb.db, { operatorKey, keysDir });
    }),
    actingDeps: memoize(async () => await createOperatorDeps(await context.readDeps())),
    withTemporal: async (deps) => ({
      ...deps,
      temporal: await context.temporal(),
      ...taskQueues(settings().taskQueuePrefix),
    }),
    temporal: memoize(async () => {
      temporal = await openTemporal(settings());
      const { lifecycleQueue } = taskQueues(settings().taskQueuePrefix);
      await createTemporalEpoch(temporal, lifecycleQueue).checkFormat();
      return temporal;
    }),
    keysFile: memoize(() => {
      const path = findKeysFile(settings());
      const warn = (_facts: object, message: string) => context.progress(`${path}: ${message}`);
      warnOfReaders(path, { warn });
      return path;
    }),
    encrypter: memoize(() => createEncrypter(followKeyFile(context.keysFile()).seal)),
    ...loads,
    now: () => new Date(),
    isJson,
    progress: (line) => {
      if (!isJson) io.stderr(`${sanitize(line)}\n`);
    },
    print: ({ json, text }) => io.stdout(`${isJson ? formatJson(json, 2) : sanitizeLines(text)}\n`),
  };
  const close = async (): Promise<void> => {
    await Promise.allSettled([...clients.map((one) => one.close()), temporal?.connection.close()]);
  };
  return { context, close };
}

/**
 * Owner that a command names, whose account exists.
 * @throws ServiceError `account_not_found`
 */
export async function findOwner(
  context: Pick<CliContext, 'readDeps'>,
  { account_id, env }: { account_id: string; env: Env },
): Promise<Owner> {
  const { stores } = await context.readDeps();
  await findAccount(stores, account_id);
  return { account_id, livemode: isLive(env) };
}

/** Routes that the variables name. */
export function readRoutes(context: Pick<CliContext, 'settings'>) {
  const { liveConnectors, sandboxConnectors } = context.settings();
  return { liveConnectors, sandboxConnectors };
}

function memoize<T>(make: () => T): () => T {
  let cached: { value: T } | undefined;
  return () => {
    cached ??= { value: make() };
    return cached.value;
  };
}
