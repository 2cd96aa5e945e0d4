import type { Client } from '@temporalio/client';
import { type MongoClient, MongoServerError } from 'mongodb';
import { describeError, isMissingFile } from '../base/errors';
import { checkMongoTls, checkTemporalTls } from '../base/tls';
import { ServiceError } from '../domain/errors';
import { type AuditPublicKeys, readAuditPublicKeys } from '../encryption/audit-keys';
import { NOT_RANDOM } from '../encryption/key-file';
import { followPairs, listHolders } from '../encryption/recipient-pairs';
import { followKeyFile } from '../encryption/service-keys';
import { connectTemporal } from '../temporal/access';
import { findConnectFault } from '../temporal/deadline';
import type { Settings } from './settings';

const CONNECT_TIMEOUT_MS = 2_500;
const APP_NAME = 'cli';
/** Scheme and login of an address, also of one that is not usable. */
const LOGIN = /^(?:mongodb(?:\+srv)?:\/\/)?(?:.*@)?/;
const ADDRESS_FAULTS = ['MongoParseError', 'MongoInvalidArgumentError'];

/**
 * Connects within about three seconds.
 * @throws ServiceError `mongodb_unavailable`, `mongodb_uri_invalid` or `mongodb_refused`
 */
export async function openMongo(
  { mongodb, allowPlainText, source }: Settings,
  connect: (uri: string, appName: string) => Promise<MongoClient>,
): Promise<MongoClient> {
  if (!allowPlainText) assertNoFault(checkMongoTls(mongodb.uri));
  try {
    return await connect(mongodb.uri, APP_NAME);
  } catch (error) {
    const reason = describeError(error).replaceAll(mongodb.uri, 'it');
    // By name: the parser of addresses throws another class of the same name.
    if (error instanceof Error && ADDRESS_FAULTS.includes(error.name)) {
      const message = `The MongoDB address from ${source} is not usable: ${reason}`;
      throw new ServiceError('mongodb_uri_invalid', message);
    }
    const host = mongodb.uri.replace(LOGIN, '').replace(/[/?].*$/, '');
    const where = `${host} (address from ${source})`;
    throw error instanceof MongoServerError
      ? new ServiceError('mongodb_refused', `MongoDB at ${where} refused: ${reason}`)
      : new ServiceError(
          'mongodb_unavailable',
          `MongoDB does not answer at ${where}. Is it running? ${reason}`,
        );
  }
}

function assertNoFault(fault: string | undefined): void {
  if (fault !== undefined) throw new ServiceError('clear_text_refused', fault);
}

/**
 * Connects within about three seconds.
 * @throws ServiceError `temporal_unavailable` or `temporal_refused`
 */
export async function openTemporal(settings: Settings): Promise<Client> {
  const { temporal, allowPlainText, source } = settings;
  if (!allowPlainText) assertNoFault(checkTemporalTls(temporal));
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
    const fault = findConnectFault(error);
    if (fault !== undefined) {
      throw new ServiceError('temporal_refused', `${fault.message} (address from ${source})`);
    }
    throw new ServiceError(
      'temporal_unavailable',
      `Temporal does not answer at ${address} (address from ${source}). ` +
        `Is it running? ${describeError(error)}`,
    );
  }
}

/** @throws ServiceError `keys_file_missing` or `keys_file_invalid` */
export function findKeysFile({ keysFile, source }: Settings): string {
  if (keysFile === undefined) {
    const message = `KEYS_FILE is not set (nor in ${source}): secrets are encrypted with the keys of the service.`;
    throw new ServiceError('keys_file_missing', message);
  }
  try {
    followKeyFile(keysFile);
    return keysFile;
  } catch (error) {
    if (isMissingFile(error)) {
      const message = `There is no key file at ${keysFile} (KEYS_FILE).`;
      throw new ServiceError('keys_file_missing', message);
    }
    // Nothing of the file's content may reach the terminal.
    const why = describeError(error).includes(NOT_RANDOM) ? `: a key ${NOT_RANDOM}` : '';
    const message = `${keysFile} (KEYS_FILE) is not a usable key file${why}.`;
    throw new ServiceError('keys_file_invalid', message);
  }
}

/** @throws ServiceError `keys_dir_missing` or `keys_dir_invalid` */
export function findKeysDir(settings: Settings): string {
  const keysDir = getKeysDir(settings);
  try {
    for (const holder of listHolders(keysDir)) {
      followPairs(keysDir, holder, 'private');
      followPairs(keysDir, holder, 'public');
    }
    return keysDir;
  } catch (error) {
    throw new ServiceError('keys_dir_invalid', describeError(error));
  }
}

/** @throws ServiceError `keys_dir_missing` or `keys_dir_invalid` */
export function findAuditKeys(settings: Settings): AuditPublicKeys {
  const keysDir = getKeysDir(settings);
  try {
    return readAuditPublicKeys(keysDir);
  } catch (error) {
    throw new ServiceError('keys_dir_invalid', describeError(error));
  }
}

/** Returns the directory, which may not exist yet. @throws ServiceError `keys_dir_missing` */
export function getKeysDir({ keysDir, source }: Settings): string {
  if (keysDir !== undefined) return keysDir;
  const message = `KEYS_DIR is not set (nor in ${source}): it holds key pairs.`;
  throw new ServiceError('keys_dir_missing', message);
}
