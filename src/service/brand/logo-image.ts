import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { LOGO_LIMITS } from '../../domain/account/brand';

/** Blocks every other decoder, whatever a file pretends to be. */
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: ['VipsForeignLoadPng', 'VipsForeignLoadJpeg', 'VipsForeignLoadWebp'],
});
// Each image is decoded once.
sharp.cache(false);

const HASH_LENGTH = 32;
const DECODE_SECONDS_MAX = 5;
const QUALITY = 90;

export interface EncodedLogo {
  hash: string;
  /** WebP without metadata. */
  image: Buffer;
  width: number;
  height: number;
}

type Encoding = { ok: true; logo: EncodedLogo } | { ok: false; fault: string };

/** Encodes an upload again, so that nothing else of the file is ever served. */
export async function encodeLogo(upload: Uint8Array): Promise<Encoding> {
  if (upload.byteLength > LOGO_LIMITS.bytes) return refuse(TOO_LARGE);
  if (isSvg(upload)) return refuse(SVG);
  const input = { limitInputPixels: LOGO_LIMITS.pixels, failOn: 'error' as const };
  try {
    const { width, height } = await sharp(upload, { ...input, limitInputPixels: false }).metadata();
    if (width * height > LOGO_LIMITS.pixels) return refuse(TOO_MANY_PIXELS);
  } catch {
    return refuse(NO_IMAGE);
  }
  try {
    const { data: image, info } = await sharp(upload, input)
      .timeout({ seconds: DECODE_SECONDS_MAX })
      .autoOrient()
      .resize({
        ...{ width: LOGO_LIMITS.side, height: LOGO_LIMITS.side },
        ...{ fit: 'inside', withoutEnlargement: true },
      })
      .webp({ quality: QUALITY, smartSubsample: true })
      .toBuffer({ resolveWithObject: true });
    const hash = createHash('sha256').update(image).digest('hex').slice(0, HASH_LENGTH);
    return { ok: true, logo: { hash, image, width: info.width, height: info.height } };
  } catch {
    return refuse(DAMAGED);
  }
}

const TOO_LARGE = `The file has more than ${LOGO_LIMITS.bytes / 1_024} KiB. Save a smaller one.`;
const TOO_MANY_PIXELS = 'The image has more than 16 megapixels. Save a smaller one.';
const SVG = 'An SVG can contain scripts, so none is accepted. Save it as a PNG.';
const NO_IMAGE = 'This is no PNG, JPEG or WebP image.';
const DAMAGED = 'The image is damaged or cut off. Save it again.';

function refuse(fault: string): Encoding {
  return { ok: false, fault };
}

const SVG_BYTES = 4_096;

/** Gives a better message; the decoder of SVG is blocked. */
function isSvg(upload: Uint8Array): boolean {
  const start = Buffer.from(upload.subarray(0, SVG_BYTES)).toString('latin1');
  return /<svg[\s>]/i.test(start);
}
