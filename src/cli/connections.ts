import os from 'node:os';
import type { Client } from '@temporalio/client';
import { MongoClient, MongoServerError } from 'mongodb';
import { mongoInClear, temporalInClear } from '../clear-text';
import { ENVIRONMENTS } from '../domain/task-queues';
import { followPairs } from '../keys/recipient-rings';
import { followKeys } from '../keys/ring';
import { createSealer, type Sealer } from '../keys/seal';
import { connectMongo } from '../mongo';
import { connectToBuild } from '../mongo-indexes';
import { connectTemporal } from '../temporal/connect';
import { connectFaultOf } from '../temporal/fault';
import { reasonOf } from '../temporal/in-time';
import { CliFailure, isMissingFile } from './failure';
import type { Settings } from './settings';

const CONNECT_TIMEOUT_MS = 2_500;
const APP_NAME = 'cli';
/** Socket time-out of long reads; the server keeps a snapshot for five minutes. */
const LONG_READ_MS = 300_000;
const ADDRESS_FAULTS = ['MongoParseError', 'MongoInvalidArgumentError'];

/**
 * @throws CliFailure `mongodb_unavailable` within about three seconds; `mongodb_uri_invalid`;
 *   `mongodb_refused`, as for a wrong password
 */
export async function openMongo(settings: Settings): Promise<MongoClient> {
  return await connected(settings, (uri) => connectMongo(uri, APP_NAME));
}

/**
 * Connects for long reads, which outlast the time that the service grants a request.
 * @throws CliFailure as `openMongo`
 */
export async function openLongReader(settings: Settings): Promise<MongoClient> {
  return await connected(settings, async (uri) => {
    const client = new MongoClient(uri, {
      appName: APP_NAME,
      serverSelectionTimeoutMS: CONNECT_TIMEOUT_MS,
      connectTimeoutMS: CONNECT_TIMEOUT_MS,
      socketTimeoutMS: LONG_READ_MS,
      // Under jest's CommonJS the driver's own dynamic import of `os` fails.
      runtimeAdapters: { os },
    });
    return await client.connect();
  });
}

/**
 * Connects for builds of indexes, which may take hours.
 * @throws CliFailure as `openMongo`
 */
export async function openIndexBuilder(settings: Settings): Promise<MongoClient> {
  return await connected(settings, connectToBuild);
}

async function connected(
  { mongodb, allowClearText, source }: Settings,
  connect: (uri: string) => Promise<MongoClient>,
): Promise<MongoClient> {
  if (!allowClearText) refuse(mongoInClear(mongodb.uri));
  try {
    return await connect(mongodb.uri);
  } catch (error) {
    const reason = reasonOf(error).replaceAll(mongodb.uri, 'it');
    // By name: the parser of addresses throws another class of the same name.
    if (error instanceof Error && ADDRESS_FAULTS.includes(error.name)) {
      const message = `The MongoDB address from ${source} is not usable: ${reason}`;
      throw new CliFailure('mongodb_uri_invalid', message);
    }
    const where = `${withoutLogin(mongodb.uri)} (address from ${source})`;
    throw error instanceof MongoServerError
      ? new CliFailure('mongodb_refused', `MongoDB at ${where} refused: ${reason}`)
      : new CliFailure(
          'mongodb_unavailable',
          `MongoDB does not answer at ${where}. Is it running? ${reason}`,
        );
  }
}

/** @throws CliFailure `clear_text_refused` where a fault is told. */
function refuse(fault: string | undefined): void {
  if (fault !== undefined) throw new CliFailure('clear_text_refused', fault);
}

/**
 * @throws CliFailure `temporal_unavailable` within about three seconds; `temporal_refused`, as for
 *   a wrong API key or an unknown namespace
 */
export async function openTemporal(settings: Settings): Promise<Client> {
  const { temporal, allowClearText, source } = settings;
  if (!allowClearText) refuse(temporalInClear(temporal));
  const { address } = temporal;
  const client = connectTemporal(temporal, APP_NAME);
  try {
    const deadline = Date.now() + CONNECT_TIMEOUT_MS;
    const { namespace } = temporal;
    await client.withDeadline(deadline, () =>
      client.workflowService.describeNamespace({ namespace }),
    );
    return client;
  } catch (error) {
    await client.connection.close();
    const fault = connectFaultOf(error);
    if (fault !== undefined) {
      throw new CliFailure('temporal_refused', `${fault.message} (address from ${source})`);
    }
    throw new CliFailure(
      'temporal_unavailable',
      `Temporal does not answer at ${address} (address from ${source}). ` +
        `Is it running? ${reasonOf(error)}`,
    );
  }
}

/** @throws CliFailure `keys_file_missing` or `keys_file_invalid`. */
export function openSealer(settings: Settings): Sealer {
  const path = keysFileOf(settings);
  return createSealer(readable(path, () => followKeys(path)));
}

/**
 * Finds the path of a key file that can be used.
 * @throws CliFailure `keys_file_missing` or `keys_file_invalid`.
 */
export function usableKeysFile(settings: Settings): string {
  const path = keysFileOf(settings);
  readable(path, () => followKeys(path));
  return path;
}

/**
 * Finds the folder of the rings of recipients; undefined where they have none of their own.
 * @throws CliFailure `keys_dir_invalid`
 */
export function usableKeysDir({ keysDir }: Settings): string | undefined {
  if (keysDir === undefined) return undefined;
  try {
    for (const environment of ENVIRONMENTS) {
      followPairs(keysDir, environment, 'private');
      followPairs(keysDir, environment, 'public');
    }
    return keysDir;
  } catch (error) {
    throw new CliFailure('keys_dir_invalid', reasonOf(error));
  }
}

function keysFileOf({ keysFile, source }: Settings): string {
  if (keysFile !== undefined) return keysFile;
  throw new CliFailure(
    'keys_file_missing',
    `KEYS_FILE is not set (nor in ${source}): secrets are sealed with the service's keys.`,
  );
}

function readable<T>(keysFile: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw isMissingFile(error)
      ? new CliFailure('keys_file_missing', `There is no key file at ${keysFile} (KEYS_FILE).`)
      : // Nothing of its content may reach the terminal.
        new CliFailure('keys_file_invalid', `${keysFile} (KEYS_FILE) is not a usable key file.`);
  }
}

/** Hosts of a MongoDB address, without user name, password or options. */
function withoutLogin(uri: string): string {
  return uri
    .replace(/^mongodb(\+srv)?:\/\//, '')
    .replace(/^.*@/, '')
    .replace(/[/?].*$/, '');
}
