import { createHash } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { inTransaction } from '../../../base/mongo';
import { omitUndefined } from '../../../domain/defined';
import { toEnv } from '../../../domain/environment';
import { type Brand, LOGO_LIMITS } from '../../../domain/merchants/brand';
import type { AccountDocument } from '../../../store/accounts';
import type { Owner, WriteDeps } from '../../access';

export interface ShownBrand extends Omit<Brand, 'display_name'> {
  name: string;
}

export function presentBrand(
  account: Pick<AccountDocument, 'name' | 'brand'> | null,
  livemode: boolean,
): ShownBrand {
  const { display_name, ...brand } = account?.brand?.[toEnv(livemode)] ?? {};
  return { ...brand, name: display_name ?? account?.name ?? '' };
}

export async function getBrand(
  { stores }: Pick<WriteDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<Brand> {
  return (await stores.accounts.get(account_id))?.brand?.[toEnv(livemode)] ?? {};
}

/** An undefined value is removed. */
export async function setBrand(
  deps: WriteDeps,
  owner: Owner,
  { display_name, accent }: { display_name: string | undefined; accent: string | undefined },
): Promise<void> {
  await changeBrand(deps, owner, ({ logo }) => omitUndefined({ display_name, accent, logo }));
}

/** Leaves a replaced logo for a day, since open or cached pages name it. */
export async function setLogo(
  deps: WriteDeps,
  owner: Owner,
  logo: Logo | undefined,
): Promise<void> {
  await changeBrand(deps, owner, async ({ logo: earlier, ...brand }, session) => {
    if (earlier !== undefined && earlier.hash !== logo?.hash) {
      await deps.stores.logos.replace(owner, earlier.hash, deps.now(), session);
    }
    if (logo === undefined) return brand;
    await deps.stores.logos.store(owner, logo, session);
    const { hash, width, height } = logo;
    return { ...brand, logo: { hash, width, height } };
  });
}

/** Changes a brand and writes its line, both or neither. */
async function changeBrand(
  { mongo, stores, audit }: WriteDeps,
  { account_id, livemode }: Owner,
  change: (brand: Brand, session: ClientSession) => Brand | Promise<Brand>,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    const env = toEnv(livemode);
    const before = (await stores.accounts.get(account_id, session))?.brand?.[env] ?? {};
    const after = await change(before, session);
    await stores.accounts.setBrand(account_id, env, after, session);
    const line = { act: 'brand.changed', account_id, livemode, target: null } as const;
    await audit({ ...line, before: toFacts(before), after: toFacts(after) }, session);
  });
}

function toFacts({ display_name, accent, logo }: Brand) {
  return { display_name: display_name ?? null, accent: accent ?? null, logo: logo?.hash ?? null };
}

interface Logo {
  hash: string;
  /** The upload as it is. */
  image: Uint8Array;
  /** Pixels. */
  width: number;
  height: number;
}

type ParsedLogo = { ok: true; logo: Logo } | { ok: false; fault: string };

/** Accepts an image that shows nothing but its picture, by its parts: the picture is not decoded. */
export function parseLogo(upload: Uint8Array): ParsedLogo {
  if (upload.byteLength > LOGO_LIMITS.bytes) return refuse(TOO_LARGE);
  const file = Buffer.from(upload);
  const format = findFormat(file);
  if (format === undefined) return refuse(SVG_START.test(getStart(file)) ? SVG : NO_IMAGE);
  try {
    const parts = [...format.listParts(file)];
    if (!parts.every(({ name }) => format.picture.test(name))) return refuse(METADATA);
    const sizes = parts.flatMap(({ name, data }) => format.sizes[name]?.(data) ?? []);
    const [width = 0, height = 0] = sizes;
    if (Math.min(width, height) === 0) return refuse(DAMAGED);
    if (Math.max(...sizes) > LOGO_LIMITS.side) return refuse(TOO_MANY_PIXELS);
    const hash = createHash('sha256').update(file).digest('hex').slice(0, HASH_LENGTH);
    return { ok: true, logo: { hash, image: upload, width, height } };
  } catch {
    return refuse(DAMAGED);
  }
}

export function readLogoType(logo: Uint8Array): Format['type'] | undefined {
  return findFormat(Buffer.from(logo))?.type;
}

const HASH_LENGTH = 32;
const SIDE = LOGO_LIMITS.side.toLocaleString('en');
const TOO_LARGE = `The file has more than ${LOGO_LIMITS.bytes / 1_024} KiB. Save a smaller one.`;
const TOO_MANY_PIXELS = `The image has more than ${SIDE} pixels a side. Save a smaller one.`;
const METADATA =
  'The image has metadata (EXIF, XMP, a comment) or moves. Save a still one without metadata.';
const SVG = 'An SVG can contain scripts, so none is accepted. Save it as a PNG.';
const SVG_START = /<svg[\s>]/i;
const NO_IMAGE = 'This is no PNG, JPEG or WebP image.';
const DAMAGED = 'The image is damaged or cut off. Save it again.';

function refuse(fault: string): ParsedLogo {
  return { ok: false, fault };
}

/** A chunk of a PNG or WebP, or a segment of a JPEG. */
interface Part {
  name: string;
  data: Buffer;
}

interface Format {
  type: 'image/png' | 'image/jpeg' | 'image/webp';
  signature: RegExp;
  /** Throws where the file is cut off. */
  listParts: (file: Buffer) => Iterable<Part>;
  /** Names of the parts that make a still picture and its colors. */
  picture: RegExp;
  sizes: Record<string, (data: Buffer) => [width: number, height: number]>;
}

const FORMATS: readonly Format[] = [
  {
    type: 'image/png',
    signature: /^\x89PNG\r\n.\n/,
    listParts: function* (file) {
      let [at, name] = [8, ''];
      while (name !== 'IEND') {
        const length = file.readUInt32BE(at);
        name = file.toString('latin1', at + 4, at + 8);
        yield { name, data: file.subarray(at + 8, at + 8 + length) };
        at = reach(file, at + 8 + length + 4);
      }
      yield* listTrailing(file, at);
    },
    picture: /^(IHDR|PLTE|IDAT|IEND|tRNS|bKGD|gAMA|cHRM|sRGB|sBIT|iCCP|cICP|pHYs)$/,
    sizes: { IHDR: (data) => [data.readUInt32BE(0), data.readUInt32BE(4)] },
  },
  {
    type: 'image/jpeg',
    signature: /^\xff\xd8\xff/,
    listParts: function* (file) {
      const text = file.toString('latin1');
      // Compressed data follows a scan's segment, and escapes each 0xff of its own.
      const marker = /\xff+([\xc0-\xcf\xd8-\xfe])/g;
      marker.lastIndex = 2;
      for (;;) {
        const [, name] = marker.exec(text) ?? [];
        if (name === undefined) throw new RangeError('The end marker is missing.');
        if (name === '\xd9') break;
        const at = marker.lastIndex;
        const end = reach(file, at + file.readUInt16BE(at));
        const data = file.subarray(at + 2, end);
        const word = /^\w*/.exec(data.toString('latin1')) ?? [];
        const [application = ''] = /[\xe0-\xef]/.test(name) ? word : [];
        yield { name: name + application, data };
        marker.lastIndex = end;
      }
      yield* listTrailing(file, marker.lastIndex);
    },
    // Frames, tables and scans; of the applications' segments JFIF, the color profile and Adobe's.
    picture: /^([\xc0-\xc2\xc4\xda\xdb\xdd]|\xe0JFIF|\xe2ICC_PROFILE|\xeeAdobe)$/,
    sizes: { '\xc0': readJpegSize, '\xc1': readJpegSize, '\xc2': readJpegSize },
  },
  {
    type: 'image/webp',
    signature: /^RIFF.{4}WEBP/s,
    listParts: function* (file) {
      const end = reach(file, 8 + file.readUInt32LE(4));
      for (let at = 12; at < end; ) {
        const length = file.readUInt32LE(at + 4);
        const data = file.subarray(at + 8, at + 8 + length);
        yield { name: file.toString('latin1', at, at + 4), data };
        at = reach(file, at + 8 + length + (length % 2));
      }
      yield* listTrailing(file, end);
    },
    picture: /^(VP8[ LX]|ALPH|ICCP)$/,
    sizes: {
      'VP8 ': (data) => [data.readUInt16LE(6) & 0x3fff, data.readUInt16LE(8) & 0x3fff],
      VP8L: (data) => [
        (data.readUInt32LE(1) & 0x3fff) + 1,
        ((data.readUInt32LE(1) >>> 14) & 0x3fff) + 1,
      ],
      VP8X: (data) => [data.readUIntLE(4, 3) + 1, data.readUIntLE(7, 3) + 1],
    },
  },
];

function readJpegSize(frame: Buffer): [number, number] {
  return [frame.readUInt16BE(3), frame.readUInt16BE(1)];
}

function reach(file: Buffer, end: number): number {
  if (end > file.length) throw new RangeError('The file is cut off.');
  return end;
}

function* listTrailing(file: Buffer, end: number): Generator<Part> {
  if (end < file.length) yield { name: 'after the end', data: file.subarray(end) };
}

function findFormat(file: Buffer): Format | undefined {
  return FORMATS.find(({ signature }) => signature.test(getStart(file)));
}

function getStart(file: Buffer): string {
  return file.toString('latin1', 0, 4_096);
}
