import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { type Entry, fromBufferPromise, openPromise, type ZipFile } from 'yauzl';
import { InvalidStatement, type StatementFault } from '../domain/banks/statement';

/** Larger months come as several files. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;

const ENTRIES_MAX = 1_000;
const NAME_MAX = 255;
/** How many times its size an entry may grow. */
const RATIO_MAX = 500;
const CHUNK_BYTES = 16 * 1024;
const HEAD_BYTES = 1_024;

/** Content of a file, or its path. */
export type FileSource = Uint8Array | string;

export interface BankFile {
  /** First bytes. */
  head: Buffer;
  chunks: AsyncIterable<Buffer>;
}

/**
 * Reads a file, or each file of a ZIP, with up to 64 MiB in all.
 * @param read has to read the file to its end
 * @throws InvalidStatement
 */
export async function readFiles(
  source: FileSource,
  read: (file: BankFile) => Promise<void>,
): Promise<void> {
  assertSize(typeof source === 'string' ? (await stat(source)).size : source.length);
  const head = await readHead(source);
  if (isZip(head)) await readZip(source, read);
  else await read({ head, chunks: limit(streamOf(source)) });
}

/** SHA-256, in hex. */
export async function hashFile(source: FileSource): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of streamOf(source)) hash.update(chunk);
  return hash.digest('hex');
}

/** @throws InvalidStatement `file_too_large` */
export function assertSize(bytes: number): void {
  if (bytes <= FILE_BYTES_MAX) return;
  throw new InvalidStatement(
    'file_too_large',
    `The file has more than ${FILE_BYTES_MAX / 1024 / 1024} MiB: import it as several files.`,
  );
}

async function readHead(source: FileSource): Promise<Buffer> {
  if (typeof source !== 'string') return toBuffer(source.subarray(0, HEAD_BYTES));
  const file = await open(source);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Copies nothing. */
function toBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

async function* streamOf(source: FileSource): AsyncGenerator<Buffer> {
  if (typeof source === 'string') {
    yield* createReadStream(source, { highWaterMark: CHUNK_BYTES });
    return;
  }
  for (let at = 0; at < source.length; at += CHUNK_BYTES)
    yield toBuffer(source.subarray(at, at + CHUNK_BYTES));
}

/** Holds also for a file that grows while it is read. */
async function* limit(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    assertSize(size);
    yield chunk;
  }
}

function isZip(head: Buffer): boolean {
  return /^504b(?:0304|0506|0708)/.test(head.toString('hex', 0, 4));
}

async function readZip(source: FileSource, read: (file: BankFile) => Promise<void>): Promise<void> {
  const options = { lazyEntries: true, autoClose: false };
  const zip = await guard(
    typeof source === 'string'
      ? openPromise(source, options)
      : fromBufferPromise(toBuffer(source), options),
  );
  try {
    const entries = zip.eachEntry();
    let size = 0;
    for (let number = 1; ; number += 1) {
      const { done, value: entry } = await guard(entries.next());
      if (done) return;
      if (number > ENTRIES_MAX) {
        throw refuse('file_too_large', `The ZIP has more than ${ENTRIES_MAX} files.`);
      }
      // Folders, and what a desktop adds.
      if (/\/$|^__MACOSX\/|(?:^|\/)\./.test(entry.fileName)) continue;
      const place = `File ${number} of the ZIP`;
      assertReadable(entry, place);
      size += entry.uncompressedSize;
      assertSize(size);
      await readEntry(zip, entry, place, read);
    }
  } finally {
    zip.close();
  }
}

/** Explains what the archive has, but not what the system says. */
async function guard<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { code = 'Z_', message } = Object(error);
    if (!String(code).startsWith('Z_')) throw error;
    throw /path|fileName/.test(message)
      ? refuse('file_invalid', 'The ZIP has a file name that leads out of its folder.')
      : refuse('file_invalid', 'The ZIP is cut off or damaged.');
  }
}

function assertReadable(entry: Entry, place: string): void {
  const { fileName, compressedSize, uncompressedSize } = entry;
  if (fileName.length > NAME_MAX) {
    throw refuse('file_invalid', `${place} has a name of over ${NAME_MAX} characters.`);
  }
  if (entry.isEncrypted()) {
    throw refuse('format_not_supported', `${place} is encrypted: unpack it with its password.`);
  }
  if (![0, 8].includes(entry.compressionMethod)) {
    throw refuse('format_not_supported', `${place} has a compression that is not read: unpack it.`);
  }
  if (uncompressedSize > CHUNK_BYTES && uncompressedSize > compressedSize * RATIO_MAX) {
    throw refuse('file_too_large', `${place} grows to more than ${RATIO_MAX} times its size.`);
  }
}

async function readEntry(
  zip: ZipFile,
  entry: Entry,
  place: string,
  read: (file: BankFile) => Promise<void>,
): Promise<void> {
  const stream = await guard(zip.openReadStreamPromise(entry));
  const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]();
  async function* readOn(first: IteratorResult<Buffer>): AsyncGenerator<Buffer> {
    let sum = 0;
    for (let next = first; !next.done; next = await guard(chunks.next())) {
      sum = crc32(next.value, sum);
      yield next.value;
    }
    if (sum !== entry.crc32) throw refuse('file_invalid', 'its checksum differs.');
  }
  try {
    const first = await guard(chunks.next());
    const head: Buffer = first.done ? Buffer.alloc(0) : first.value;
    if (isZip(head)) throw refuse('format_not_supported', 'it is an archive, too: unpack it.');
    await read({ head: head.subarray(0, HEAD_BYTES), chunks: readOn(first) });
  } catch (error) {
    if (!(error instanceof InvalidStatement)) throw error;
    throw refuse(error.code, `${place}: ${error.message}`);
  } finally {
    stream.destroy();
  }
}

function refuse(code: StatementFault, message: string): InvalidStatement {
  return new InvalidStatement(code, message);
}

/** First bytes of other files, in hex. */
const BYTES: readonly (readonly [RegExp, string])[] = [
  [/^25504446/, 'a PDF'],
  [/^1f8b/, 'compressed by gzip: unpack it'],
  [/^(?:425a68|fd377a|377abc|526172|28b52f)/, 'an archive, but no ZIP: unpack it'],
  [/^d0cf11e0/, 'an old Office document'],
  [/^30(?:8.|.{2}).{0,8}06092a864886f70d01/, 'signed or encrypted'],
];

/** First words of other files. */
const TEXTS: readonly (readonly [RegExp, string])[] = [
  [/^-----BEGIN /, 'signed or encrypted'],
  [/^(?:\{1:|:20:|[^\n]{0,40}\r?\n:20:)/, 'MT940, text of SWIFT'],
  [/^(?:<!doctype html|<html)/i, 'a page of HTML, perhaps an error of the bank'],
  [/^(?:OFXHEADER|<\?OFX|<OFX>)/, 'OFX'],
  [/^!(?:Type|Account)/i, 'QIF'],
  [/^01,[^\n]*\/\r?\n02,/, 'BAI2'],
  [/^[{[]/, 'JSON'],
];

/** Names another kind of file by its first bytes. */
export function findKind(head: Buffer): string | undefined {
  const hex = head.toString('hex');
  const text = head
    .toString('latin1')
    .replaceAll('\0', '')
    .replace(/^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*/, '');
  const found =
    BYTES.find(([pattern]) => pattern.test(hex)) ?? TEXTS.find(([pattern]) => pattern.test(text));
  return found?.[1];
}

export function isXml(head: Buffer): boolean {
  const hex = head.toString('hex');
  return /^(?:efbbbf|fffe|feff)?(?:00|09|0a|0d|20)*3c|^(?:4c6fa794|fffe0000|0000feff)/.test(hex);
}
