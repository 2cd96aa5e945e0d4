import { isUtf8 } from 'node:buffer';
import { InvalidStatement } from '../domain/banks/statement';

export interface Decoder {
  /** In lower case. */
  encoding: string;
  /** @param bytes none at the end */
  decode(bytes?: Buffer): string;
  /** The first byte that is not of the encoding, and what to do, in words. */
  readonly flaw: string | undefined;
}

/** First bytes, in hex, that count whatever the file says. */
const BEGINNINGS: readonly (readonly [RegExp, string])[] = [
  [/^(?:fffe0000|0000feff)/, 'utf-32'],
  [/^4c6fa794/, 'ebcdic'],
  [/^efbbbf/, 'utf-8'],
  [/^(?:fffe|(?:(?:09|0a|0d|20)00)*3c00)/, 'utf-16le'],
  [/^(?:feff|(?:00(?:09|0a|0d|20))*003c)/, 'utf-16be'],
];

/** Reads the encoding that an XML declaration names. */
export function readDeclared(text: string): string | undefined {
  return /^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([\w.:-]{1,40})["']/
    .exec(text)?.[1]
    ?.toLowerCase();
}

/**
 * Decodes as the first bytes say, else as the file does, else as UTF-8. A byte of another encoding
 * becomes U+FFFD, which harms only the text around it.
 * @param head first bytes of the file
 * @throws InvalidStatement for an unknown encoding
 */
export function createDecoder(head: Buffer): Decoder {
  const declared = readDeclared(head.toString('latin1').replace(/^\xef\xbb\xbf/, ''));
  const hex = head.toString('hex');
  const begun = BEGINNINGS.find(([pattern]) => pattern.test(hex))?.[1];
  // What is read byte by byte is not of UTF-16.
  const isWide = /^(?:utf|ucs|iso-10646)/.test(declared ?? '');
  const encoding = begun ?? (declared === undefined || isWide ? 'utf-8' : declared);
  const source = encoding === 'utf-8' ? 'WINDOWS-1252' : encoding.toUpperCase();
  const change = declared === undefined ? '' : ', and let its first line say UTF-8';
  const advice = `Convert it by \`iconv -f ${source} -t UTF-8\`${change}.`;
  const read = encoding === 'utf-8' ? createUtf8Reader() : createReader(encoding, advice);
  const origin = declared === undefined ? 'as it names none' : `it says ${declared.toUpperCase()}`;
  let line = 1;
  let flaw: string | undefined;
  return {
    encoding,
    decode: (bytes) => {
      const { text, wrong } = read(bytes);
      if (flaw !== undefined) return text;
      if (wrong !== undefined) {
        const at = line + countLines(text.slice(0, text.indexOf('\ufffd')));
        flaw = `Line ${at} has ${wrong}, which is not ${encoding.toUpperCase()} (${origin}). ${advice}`;
      }
      line += countLines(text);
      return text;
    },
    get flaw() {
      return flaw;
    },
  };
}

interface Reading {
  text: string;
  wrong?: string | undefined;
}

function createUtf8Reader(): (bytes?: Buffer) => Reading {
  let rest = Buffer.alloc(0);
  let offset = 0;
  return (bytes) => {
    const raw = bytes === undefined ? rest : Buffer.concat([rest, bytes]);
    const end = bytes === undefined ? raw.length : findEnd(raw);
    const whole = raw.subarray(0, end);
    const at = isUtf8(whole) ? -1 : findWrong(whole);
    const wrong =
      at < 0
        ? undefined
        : `byte 0x${whole.toString('hex', at, at + 1).toUpperCase()} (offset ${offset + at})`;
    rest = raw.subarray(end);
    offset += end;
    return { text: whole.toString('utf8'), wrong };
  };
}

/** Finds the end of the last whole character. */
function findEnd(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte >= 0xc0) return getLength(byte) > back ? bytes.length - back : bytes.length;
    if (byte < 0x80) break;
  }
  return bytes.length;
}

/** By the first byte of a character of UTF-8. */
function getLength(byte: number): number {
  if (byte < 0xe0) return byte < 0x80 ? 1 : 2;
  return byte < 0xf0 ? 3 : 4;
}

function findWrong(bytes: Buffer): number {
  let at = 0;
  while (at < bytes.length) {
    const next = at + getLength(bytes[at] ?? 0);
    if (!isUtf8(bytes.subarray(at, next))) break;
    at = next;
  }
  return at;
}

function createReader(encoding: string, advice: string): (bytes?: Buffer) => Reading {
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(encoding);
  } catch {
    const message = `The file is ${encoding.toUpperCase()}, which is not read. ${advice}`;
    throw new InvalidStatement('format_not_supported', message);
  }
  return (bytes) => {
    const text = bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    return { text, wrong: text.includes('\ufffd') ? 'a byte' : undefined };
  };
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
