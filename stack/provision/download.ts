import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, request } from 'undici';
import { OperationalError } from '../../src/base/errors';
import type { Task } from '../terminal';
import { needTool, runCommand } from './command';

export const PLATFORM = `${process.platform}-${process.arch}`;

/** Hash is checked before anything of the archive runs. */
interface Archive {
  url: string;
  sha256: string;
}

export type Archives = Partial<Record<string, Archive>>;

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

/** Short, since a blocked host must not delay the next route. */
const CONNECT_MS = 5_000;
const STALLED_MS = 15_000;
const REDIRECTS_MAX = 5;

/**
 * @returns SHA-256 in hex
 * @throws OperationalError if the server is unreachable, refuses, or stalls
 */
export async function download(
  url: string,
  file: string,
  task: Task,
  signal: AbortSignal,
): Promise<string> {
  return await overHttp(url, signal, async (body, bytesTotal) => {
    const hash = createHash('sha256');
    let bytes = 0;
    await pipeline(
      body,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          hash.update(chunk);
          bytes += chunk.length;
          task.say(`downloading ${megabytes(bytes)} of ${megabytes(bytesTotal)} MB`);
          yield chunk;
        }
      },
      createWriteStream(file),
    );
    return hash.digest('hex');
  });
}

export async function unpackTar(archive: string, into: string, signal: AbortSignal): Promise<void> {
  // Root, too, owns what it unpacks.
  const args = ['-xzof', archive, '-C', into];
  await runCommand(needTool('tar'), args, { timeoutMs: 120_000, signal });
}

export async function hashFile(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}

async function overHttp<T>(
  address: string,
  signal: AbortSignal,
  read: (body: AsyncIterable<Buffer>, bytesTotal: number) => Promise<T>,
): Promise<T> {
  const dispatcher = new EnvHttpProxyAgent({ connect: { timeout: CONNECT_MS } });
  try {
    let url = new URL(address);
    for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
      if (url.protocol !== 'https:') throw new OperationalError(`${url.host} has no https URL`);
      const options = { dispatcher, signal, headersTimeout: CONNECT_MS, bodyTimeout: STALLED_MS };
      const { statusCode, headers, body } = await request(url, options);
      if (statusCode === 200) return await read(body, Number(headers['content-length'] ?? 0));
      await body.dump();
      const location = headers['location'];
      if (statusCode < 300 || statusCode > 399 || typeof location !== 'string') {
        throw new OperationalError(`${url.host} answered ${statusCode}`);
      }
      url = new URL(location, url);
    }
    throw new OperationalError(`${address} redirects too often`);
  } finally {
    await dispatcher.destroy();
  }
}

function megabytes(bytes: number): string {
  return bytes === 0 ? '?' : String(Math.round(bytes / 1_000_000));
}
