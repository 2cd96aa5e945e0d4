import type { Client } from '@temporalio/client';
import type { Db, MongoClient } from 'mongodb';
import type { Sealer } from '../seal';
import { createStores, type Stores } from '../store';
import { openMongo, openSealer, openTemporal } from './connections';
import { readSettings, type Settings } from './settings';

/** Where a run reads its environment and writes its answer. */
export interface CliIo {
  env: NodeJS.ProcessEnv;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
}

/** What a command has to say: the document of `--json`, and the same for a person. */
export interface Answer {
  json: unknown;
  text: string;
}

/** What commands draw on; each server is connected to by the first one that asks. */
export interface CliContext {
  settings: () => Settings;
  db: () => Promise<Db>;
  stores: () => Promise<Stores>;
  temporal: () => Promise<Client>;
  sealer: () => Sealer;
  now: () => Date;
  print: (answer: Answer) => void;
}

/** The context of one run; `close` ends what it opened. */
export function createContext(
  io: CliIo,
  isJson: boolean,
): { context: CliContext; close: () => Promise<void> } {
  const settings = once(() => readSettings(io.env));
  let mongo: MongoClient | undefined;
  let temporal: Client | undefined;
  const db = once(async () => {
    mongo = await openMongo(settings());
    return mongo.db(settings().mongodb.db);
  });
  const context: CliContext = {
    settings,
    db,
    stores: once(async () => createStores(await db())),
    temporal: once(async () => {
      temporal = await openTemporal(settings());
      return temporal;
    }),
    sealer: once(() => openSealer(settings())),
    now: () => new Date(),
    print: ({ json, text }) => io.stdout(`${isJson ? JSON.stringify(json, null, 2) : text}\n`),
  };
  const close = async (): Promise<void> => {
    await Promise.allSettled([mongo?.close(), temporal?.connection.close()]);
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
