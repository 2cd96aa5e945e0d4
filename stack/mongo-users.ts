import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../src/base/errors';
import { exitAfter } from '../src/base/process';
import { replaceFile } from './data-dir';
import { becomePrimary, MONGO_USERS, mongoLogin } from './mongo-server';

const PORT = 27_017;
const TRIES_MAX = 60;
const WAIT_MS = 1_000;

/**
 * Makes the replica set and the users of a MongoDB next to it, which admits the first one only from
 * its own machine, and writes the address for each into a folder of its own.
 * @see docs/operations.md#containers
 */
export async function prepareUsers(folder: string, host: string, port = PORT): Promise<void> {
  const login = mongoLogin(join(folder, 'operator'));
  for (let tries = 1; ; tries += 1) {
    try {
      await becomePrimary({ port, host, login });
      break;
    } catch (error) {
      if (tries === TRIES_MAX) throw error;
      console.info(`MongoDB is not ready: ${describeError(error)}`);
      await sleep(WAIT_MS);
    }
  }
  for (const user of MONGO_USERS) {
    const address = `mongodb://${user}:${login.passwords[user]}@${host}/?replicaSet=payments`;
    replaceFile(join(folder, user, 'uri'), address);
  }
}

if (require.main === module) exitAfter(prepareUsers('/login', `mongodb:${PORT}`));
