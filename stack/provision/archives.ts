import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OperationalError } from '../../src/base/errors';
import type { Task } from '../terminal';
import { download, unpackTar } from './download';

export const PLATFORM = `${process.platform}-${process.arch}`;

/** Hash is checked before anything of the archive runs. */
interface Archive {
  url: string;
  sha256: string;
}

type Archives = Partial<Record<string, Archive>>;

/** @throws OperationalError if the platform has no archive, or its hash differs */
export async function fetchArchive(
  archives: Archives,
  folder: string,
  task: Task,
  signal: AbortSignal,
): Promise<Archive> {
  const archive = archives[PLATFORM];
  if (archive === undefined) {
    throw new OperationalError(`no archive for ${PLATFORM} is known by its SHA-256`);
  }
  const file = join(folder, 'archive.tar.gz');
  checkHash(await download(archive.url, file, task, signal), archive);
  await unpackTar(file, folder, signal);
  await rm(file);
  return archive;
}

/** @throws OperationalError if the hash differs; the file must not be unpacked then */
export function checkHash(sha256: string, archive: Archive): void {
  if (sha256 === archive.sha256) return;
  throw new OperationalError(`${archive.url} has the SHA-256 ${sha256}, not the known one`);
}

const TEMPORAL = 'https://github.com/temporalio/cli/releases/download/v1.5.1/temporal_cli_1.5.1_';

export const TEMPORAL_ARCHIVES: Archives = {
  'linux-x64': {
    url: `${TEMPORAL}linux_amd64.tar.gz`,
    sha256: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  },
  'linux-arm64': {
    url: `${TEMPORAL}linux_arm64.tar.gz`,
    sha256: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  },
  'darwin-x64': {
    url: `${TEMPORAL}darwin_amd64.tar.gz`,
    sha256: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  },
  'darwin-arm64': {
    url: `${TEMPORAL}darwin_arm64.tar.gz`,
    sha256: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
  },
};

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
