import { randomBytes } from 'node:crypto';
import { LOGO_LIMITS } from '../../../src/domain/merchants/brand';
import { parseLogo, readLogoType } from '../../../src/service/merchants/brand/brand';
import { buildPng, buildPngChunk } from '../../support/images';

/** Images of 24 by 12 pixels. */
const PNG = buildPng(24, 12);
const JPEG = Buffer.from(
  '/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//' +
    '2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//' +
    'wgARCAAMABgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAVAQEBAAAAAAAAAAAAAAAAAAAABf/aAAwDAQAC' +
    'EAMQAAABoSbAH//EABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEAAQUCX//EABQRAQAAAAAAAAAAAAAAAAAAABD/2gAIAQMB' +
    'AT8BP//EABQRAQAAAAAAAAAAAAAAAAAAABD/2gAIAQIBAT8BP//EABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEABj8CX//E' +
    'ABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEAAT8hX//aAAwDAQACAAMAAAAQ99//xAAUEQEAAAAAAAAAAAAAAAAAAAAQ/9oA' +
    'CAEDAQE/ED//xAAUEQEAAAAAAAAAAAAAAAAAAAAQ/9oACAECAQE/ED//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAE/' +
    'EF//2Q==',
  'base64',
);
const LOSSY = Buffer.from(
  'UklGRkgAAABXRUJQVlA4IDwAAABwAwCdASoYAAwAPm0qkUWkIqGYBABABsSgC7LoB+AH4AAIiAAA/qTX/7GYgrmvwhf/tLIQ' +
    'rr/nmuzAAAA=',
  'base64',
);
const LOSSLESS = Buffer.from('UklGRhwAAABXRUJQVlA4TBAAAAAvF8ACAAdQs/5H/wMR0f8A', 'base64');
const TRANSPARENT = Buffer.from(
  'UklGRmwAAABXRUJQVlA4WAoAAAAQAAAAFwAACwAAQUxQSAoAAAABB1DAiAhERP8DVlA4IDwAAABwAwCdASoYAAwAPm0skkWk' +
    'IqGYBABABsSgC7LoB+AH4AAMrYAA+47/9eiDxBv26P/2lkvXs/0YUswAAAA=',
  'base64',
);

const IMAGES = [
  ['a PNG', PNG, 'image/png'],
  ['a JPEG in several scans', JPEG, 'image/jpeg'],
  ['a lossy WebP', LOSSY, 'image/webp'],
  ['a lossless WebP', LOSSLESS, 'image/webp'],
  ['a transparent WebP', TRANSPARENT, 'image/webp'],
] as const;

const PAGE = Buffer.from('<script>alert(1)</script>');

function buildSegment(marker: number, data: string): Buffer {
  const head = Buffer.from([0xff, marker, 0, data.length + 2]);
  return Buffer.concat([head, Buffer.from(data, 'latin1')]);
}

const addToPng = (kind: string, data: string) =>
  buildPng(24, 12, { chunks: [buildPngChunk(kind, Buffer.from(data))] });

function addToJpeg(segment: Buffer, at = 2): Buffer {
  return Buffer.concat([JPEG.subarray(0, at), segment, JPEG.subarray(at)]);
}

function addToWebp(name: string, data: string): Buffer {
  const file = Buffer.concat([TRANSPARENT, Buffer.from(`${name}0000${data}`, 'latin1')]);
  file.writeUInt32LE(data.length, TRANSPARENT.length + 4);
  file.writeUInt32LE(file.length - 8, 4);
  return file;
}

function replaceBytes(file: Buffer, at: number, bytes: readonly number[]): Buffer {
  const changed = Buffer.from(file);
  changed.set(bytes, at);
  return changed;
}

test.each(IMAGES)('%s is served as it is, with its own type and size', (_, image, type) => {
  const hash = expect.stringMatching(/^[0-9a-f]{32}$/);
  expect(parseLogo(image)).toEqual({ ok: true, logo: { hash, image, width: 24, height: 12 } });
  expect(readLogoType(image)).toBe(type);
});

test('the same image has the same hash, and another one another', () => {
  const [first, same, other] = [PNG, Buffer.from(PNG), buildPng(24, 12, { gray: 9 })].map(
    parseLogo,
  );
  expect(same).toEqual(first);
  expect(other).not.toMatchObject({ logo: { hash: first?.ok && first.logo.hash } });
});

test.each([
  ['a PNG', addToPng('iCCP', 'sRGB')],
  ['a JPEG', addToJpeg(buildSegment(0xe2, 'ICC_PROFILE\0'))],
  ['a JPEG of JFIF', addToJpeg(buildSegment(0xe0, 'JFIF\0'))],
  ['a WebP', addToWebp('ICCP', 'sRGB')],
])('%s keeps its colors', (_, image) => {
  expect(parseLogo(image)).toMatchObject({ ok: true, logo: { image } });
});

test.each([
  ['EXIF in a PNG', addToPng('eXIf', 'MM')],
  ['XMP in a PNG', addToPng('iTXt', 'XML')],
  ['a comment in a PNG', addToPng('tEXt', 'A')],
  ['the time of a PNG', addToPng('tIME', 'A')],
  ['an animated PNG', addToPng('acTL', 'A')],
  ['EXIF in a JPEG', addToJpeg(buildSegment(0xe1, 'Exif\0\0GPS'))],
  ['XMP in a JPEG', addToJpeg(buildSegment(0xe1, 'http://ns.adobe.com/xap/1.0/\0'))],
  ['IPTC in a JPEG', addToJpeg(buildSegment(0xed, 'Photoshop 3.0\0'))],
  ['a comment in a JPEG', addToJpeg(buildSegment(0xfe, 'Ada'))],
  ['a second picture in a JPEG', addToJpeg(buildSegment(0xe2, 'MPF\0'))],
  ['a comment between the scans of a JPEG', addToJpeg(buildSegment(0xfe, 'Ada'), -2)],
  ['EXIF in a WebP', addToWebp('EXIF', 'GPS.')],
  ['XMP in a WebP', addToWebp('XMP ', 'XML.')],
  ['an animated WebP', addToWebp('ANIM', '....')],
  ['a page behind a PNG', Buffer.concat([PNG, PAGE])],
  ['a page behind a JPEG', Buffer.concat([JPEG, PAGE])],
  ['a page behind a WebP', Buffer.concat([LOSSY, PAGE])],
])('%s is refused in words', (_, image) => {
  expect(parseLogo(image)).toEqual({
    ok: false,
    fault:
      'The image has metadata (EXIF, XMP, a comment) or moves. Save a still one without metadata.',
  });
});

const JPEG_SIDES = JPEG.indexOf(Buffer.from([0xff, 0xc2])) + 5;
const big = (side: number) => [side >> 8, side & 0xff];
const little = (side: number) => [side & 0xff, side >> 8];
/** Height of a lossless WebP: 14 bits less one, behind those of its width. */
const tall = (side: number) => [0x40 * (side & 3), (side >> 2) & 0xff, side >> 10];

test.each<[string, Buffer, at: number, write: (side: number) => number[], less?: number]>([
  ['a PNG', PNG, 18, big],
  ['a tall PNG', PNG, 22, big],
  ['a tall JPEG', JPEG, JPEG_SIDES, big],
  ['a JPEG', JPEG, JPEG_SIDES + 2, big],
  ['a lossy WebP', LOSSY, 26, little],
  ['a tall lossy WebP', LOSSY, 28, little],
  ['a lossless WebP', LOSSLESS, 21, (side) => [side & 0xff, (side >> 8) | 0xc0], 1],
  ['a tall lossless WebP', LOSSLESS, 22, tall, 1],
  ['the canvas of a WebP', TRANSPARENT, 24, little, 1],
])('%s has at most 2,048 pixels a side', (_, image, at, write, less = 0) => {
  const parse = (side: number) => parseLogo(replaceBytes(image, at, write(side - less)));
  expect(parse(2_048).ok).toBe(true);
  expect(parse(2_049)).toEqual({
    ok: false,
    fault: 'The image has more than 2,048 pixels a side. Save a smaller one.',
  });
});

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>1</script></svg>';

test.each([
  ['an SVG with a script', Buffer.from(SVG), 'An SVG can contain scripts'],
  ['an SVG with a prolog', Buffer.from(`<?xml version="1.0"?><!-- x -->\n${SVG}`), 'An SVG can'],
  ['a text', Buffer.from('hello'), 'no PNG, JPEG or WebP'],
  ['nothing', Buffer.alloc(0), 'no PNG, JPEG or WebP'],
  ['random bytes', Buffer.concat([Buffer.from('x'), randomBytes(5_000)]), 'no PNG, JPEG or WebP'],
  ['a page', Buffer.from('<!doctype html><html></html>'), 'no PNG, JPEG or WebP'],
  ['a file of more than 128 KiB', randomBytes(LOGO_LIMITS.bytes + 1), 'more than 128 KiB'],
  ['a GIF', Buffer.from('GIF89a\x01\0\x01\0\x80\0\0;', 'latin1'), 'no PNG, JPEG or WebP'],
  ['a PNG of no pixels', buildPng(0, 12), 'damaged'],
  ['a JPEG without a frame', replaceBytes(JPEG, JPEG_SIDES - 4, [0xc4]), 'damaged'],
])('%s is refused as a logo', (_, upload, fault) => {
  expect(parseLogo(upload)).toEqual({ ok: false, fault: expect.stringContaining(fault) });
});

test.each(IMAGES)('%s that is cut off anywhere is refused', (_, image) => {
  for (let length = 0; length < image.length; length += 1) {
    expect(parseLogo(image.subarray(0, length)).ok).toBe(false);
  }
});
