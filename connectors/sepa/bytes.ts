import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

/** A document of MongoDB holds so much compressed and encrypted. */
const BYTES_MAX = 64 * 1024 * 1024;
const compress = promisify(gzip);
const decompress = promisify(gunzip);

export async function pack(text: string): Promise<string> {
  return (await compress(text)).toString('base64');
}

export async function unpack(packed: string): Promise<string> {
  const bytes = await decompress(Buffer.from(packed, 'base64'), { maxOutputLength: BYTES_MAX });
  return bytes.toString('utf8');
}
