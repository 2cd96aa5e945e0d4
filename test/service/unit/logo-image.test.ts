import { randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { LOGO_LIMITS } from '../../../src/domain/account/brand';
import { encodeLogo } from '../../../src/service/brand/logo-image';

const draw = (width: number, height: number) =>
  sharp({
    create: { width, height, channels: 4, background: { r: 250, g: 90, b: 0, alpha: 0.5 } },
  });

async function encode(upload: Uint8Array) {
  const encoding = await encodeLogo(upload);
  if (!encoding.ok) throw new Error(encoding.fault);
  const { format, width, height, exif, icc, xmp, hasAlpha } = await sharp(
    encoding.logo.image,
  ).metadata();
  return { logo: encoding.logo, format, width, height, metadata: exif ?? icc ?? xmp, hasAlpha };
}

test.each(['png', 'jpeg', 'webp'] as const)(
  'a %s becomes a WebP of at most 512 pixels',
  async (format) => {
    const stored = await encode(await draw(1_200, 300).toFormat(format).toBuffer());
    expect(stored).toMatchObject({ format: 'webp', width: 512, height: 128 });
    expect(stored.logo).toMatchObject({
      width: 512,
      height: 128,
      hash: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(stored.hasAlpha).toBe(format !== 'jpeg');
  },
);

test('a small image keeps its size, and the same image has the same hash', async () => {
  const upload = await draw(64, 40).png().toBuffer();
  const first = await encode(upload);
  expect(first).toMatchObject({ width: 64, height: 40 });
  expect((await encode(upload)).logo.hash).toBe(first.logo.hash);
});

test('a logo loses the metadata of a camera, and its rotation is applied', async () => {
  const upload = await draw(80, 40)
    .withExif({ IFD0: { Copyright: 'Ada Lovelace' }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } })
    .withMetadata({ orientation: 6 })
    .jpeg()
    .toBuffer();
  expect(upload.includes('Ada Lovelace')).toBe(true);
  const stored = await encode(upload);
  expect(stored).toMatchObject({ width: 40, height: 80, metadata: undefined });
  expect(stored.logo.image.includes('Ada')).toBe(false);
});

test('a logo loses the bytes behind the image', async () => {
  const upload = Buffer.concat([
    await draw(8, 8).png().toBuffer(),
    Buffer.from('<script>alert(1)</script>'),
  ]);
  expect((await encode(upload)).logo.image.includes('script')).toBe(false);
});

/** Builds a PNG of one color, of few bytes for any size. */
function buildBomb(side: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, crc] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    crc.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, crc]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([1, 0, 0, 0, 0], 8);
  const rows = deflateSync(Buffer.alloc((Math.ceil(side / 8) + 1) * side), { level: 9 });
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const end = chunk('IEND', Buffer.alloc(0));
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', rows), end]);
}

test('a small file that unpacks to too many pixels is refused before it is unpacked', async () => {
  const upload = buildBomb(12_000);
  expect(upload.length).toBeLessThan(LOGO_LIMITS.bytes);
  expect(await encodeLogo(upload)).toEqual({
    ok: false,
    fault: 'The image has more than 16 megapixels. Save a smaller one.',
  });
  expect((await encodeLogo(buildBomb(1_000))).ok).toBe(true);
});

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>1</script></svg>';

test.each([
  ['an SVG with a script', Buffer.from(SVG), 'An SVG can contain scripts'],
  ['an SVG with a prolog', Buffer.from(`<?xml version="1.0"?><!-- x -->\n${SVG}`), 'An SVG can'],
  ['a text', Buffer.from('hello'), 'no PNG, JPEG or WebP'],
  ['nothing', Buffer.alloc(0), 'no PNG, JPEG or WebP'],
  ['random bytes', randomBytes(5_000), 'no PNG, JPEG or WebP'],
  ['a page', Buffer.from('<!doctype html><html></html>'), 'no PNG, JPEG or WebP'],
  ['a file of more than 256 KiB', randomBytes(LOGO_LIMITS.bytes + 1), 'more than 256 KiB'],
  // The smallest GIF of one pixel.
  [
    'a GIF',
    Buffer.from('R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==', 'base64'),
    'no PNG, JPEG or WebP',
  ],
])('%s is refused as a logo', async (_, upload, fault) => {
  expect(await encodeLogo(upload)).toEqual({ ok: false, fault: expect.stringContaining(fault) });
});

test.each(['png', 'jpeg', 'webp'] as const)('a %s that is cut off is refused', async (format) => {
  const noise = sharp(randomBytes(90 * 90 * 3), { raw: { width: 90, height: 90, channels: 3 } });
  const upload = await noise.toFormat(format).toBuffer();
  expect((await encodeLogo(upload.subarray(0, upload.length / 2))).ok).toBe(false);
});
