import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch } from 'undici';
import { OperationalError } from '../../src/base/errors';
import type { Task } from '../terminal';
import { needTool, runCommand } from './command';

export const PLATFORM = `${process.platform}-${process.arch}`;

/** Short, since a blocked host must not delay the next route. */
const CONNECT_MS = 5_000;
const STALLED_MS = 15_000;

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
  await download(archive.url, file, task, signal);
  checkHash(await hashFile(file), archive);
  await unpackTar(file, folder, signal);
  await rm(file);
  return archive;
}

/** @throws OperationalError if the hash differs; the file must not be unpacked then */
export function checkHash(sha256: string, archive: Archive): void {
  if (sha256 === archive.sha256) return;
  throw new OperationalError(`${archive.url} has the SHA-256 ${sha256}, not the known one`);
}

/** @throws Error if the server is unreachable, refuses, or stalls */
export async function download(
  url: string,
  file: string,
  task: Task,
  signal: AbortSignal,
): Promise<void> {
  const { protocol, host } = new URL(url);
  if (protocol !== 'https:') throw new OperationalError(`${host} has no https URL`);
  const timeouts = { headersTimeout: CONNECT_MS, bodyTimeout: STALLED_MS };
  const dispatcher = new EnvHttpProxyAgent({ ...timeouts, connect: { timeout: CONNECT_MS } });
  try {
    const { ok, status, headers, body } = await fetch(url, { dispatcher, signal });
    if (!ok || body === null) throw new OperationalError(`${host} answered ${status}`);
    const total = megabytes(Number(headers.get('content-length') ?? 0));
    let bytes = 0;
    const say = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        task.say(`downloading ${megabytes(bytes)} of ${total} MB`);
        yield chunk;
      }
    };
    await pipeline(body, say, createWriteStream(file));
  } finally {
    await dispatcher.destroy();
  }
}

function megabytes(bytes: number): string {
  return bytes === 0 ? '?' : String(Math.round(bytes / 1_000_000));
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
