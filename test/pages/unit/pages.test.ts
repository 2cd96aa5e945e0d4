import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import Koa from 'koa';
import { accentCss, derivePalette } from '../../../src/pages/accent';
import { createDocsSite } from '../../../src/pages/docs-site';
import { COLORS_CSS } from '../../../src/pages/styles';
import { LANGUAGE_CODES, TEXTS } from '../../../src/pages/texts';
import { en } from '../../../src/pages/texts/en';
import { fillText } from '../../../src/pages/texts/texts';
import { useTempFolder } from '../../unit/temp-folder';
import { type Receiver, receiveHttp } from '../../webhooks/receiver';

describe('the texts', () => {
  /** Texts by their path, such as `notice.taken.title`. */
  function flatten(texts: object, path = ''): [path: string, text: string][] {
    return Object.entries(texts).flatMap(([name, value]): [string, string][] =>
      typeof value === 'string' ? [[`${path}${name}`, value]] : flatten(value, `${path}${name}.`),
    );
  }

  const placeholders = (text: string) => (text.match(/\{\w*\}/g) ?? []).toSorted();

  const english = flatten(en);

  test('there are eight languages, each with its own name', () => {
    expect(Object.keys(TEXTS)).toEqual([...LANGUAGE_CODES]);
    const names = LANGUAGE_CODES.map((code) => TEXTS[code].name);
    expect(new Set(names).size).toBe(8);
    expect(names).toEqual(names.toSorted((a, b) => a.localeCompare(b, 'en')));
  });

  const tail = (text: string) => /[.…]$/.exec(text)?.[0];

  test.each(LANGUAGE_CODES)('the texts in %s are complete, tidy, translated, and alike', (code) => {
    const texts = new Map(flatten(TEXTS[code]));
    expect([...texts.keys()]).toEqual(english.map(([path]) => path));
    const untidy = (text: string) =>
      text === '' || text !== text.trim() || /['"]| {2}|\.\.\./.test(text);
    const faulty = english.filter(([path, text]) => {
      const own = texts.get(path) ?? '';
      const isAlike =
        `${placeholders(own)}` === `${placeholders(text)}` && tail(own) === tail(text);
      return untidy(own) || !isAlike || (code !== 'en' && own === text);
    });
    expect(faulty).toEqual([]);
  });

  test('a text is never shown with a placeholder that nothing fills', () => {
    expect(fillText('Pay {amount} to {merchant}', { amount: '€1', merchant: '{amount}' })).toBe(
      'Pay €1 to {amount}',
    );
    expect(() => fillText('Pay {amount}', {})).toThrow('No value for {amount}');
  });
});

describe('the accent', () => {
  /** Computes the contrast by the formula of WCAG 2, independently of the product. */
  function contrast(one: string, other: string): number {
    const [a = 0, b = 0] = [one, other].map((color) => {
      const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
        const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    });
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }

  const schemes = [
    ['light', '#ffffff', '#f3f4f7'],
    ['dark', '#141a28', '#0b0f19'],
  ] as const;

  const anyColor = fc
    .integer({ min: 0, max: 0xffffff })
    .map((value) => `#${value.toString(16).padStart(6, '0')}`);

  test.each(schemes)('the style sheet has the colors of the %s scheme', (_, card, page) => {
    expect(COLORS_CSS).toContain(`--page: ${page}; --card: ${card};`);
  });

  test.each(schemes)('every accent color is readable in the %s scheme', (scheme, card, page) => {
    fc.assert(
      fc.property(anyColor, (color) => {
        const { fill, fillHover, onFill, edge, accent, tint } = derivePalette(color, scheme);
        expect(fill).toBe(color);
        expect(contrast(onFill, fill)).toBeGreaterThanOrEqual(4.5);
        expect(contrast(onFill, fillHover)).toBeGreaterThanOrEqual(4.5);
        expect(contrast(edge, card)).toBeGreaterThanOrEqual(3);
        for (const surface of [card, page, tint]) {
          expect(contrast(accent, surface)).toBeGreaterThanOrEqual(4.5);
        }
      }),
      { examples: [['#ffffff'], ['#000000'], ['#ffff00'], ['#767676'], ['#777777'], ['#141a28']] },
    );
  });

  test('a readable accent color stays the same, and its edge too', () => {
    expect(derivePalette('#0a5c45', 'light')).toMatchObject({
      accent: '#0a5c45',
      edge: '#0a5c45',
      onFill: '#ffffff',
    });
    expect(derivePalette('#ffd400', 'light')).toMatchObject({ fill: '#ffd400', onFill: '#000000' });
  });

  test('the style sheet of an accent sets only colors', () => {
    expect(accentCss('#ff6600')).toMatch(
      /^:root \{( --[a-z-]+: #[0-9a-f]{6};)+ \}\n@media \(prefers-color-scheme: dark\) \{ :root \{( --[a-z-]+: #[0-9a-f]{6};)+ \} \}\n$/,
    );
  });
});

const SCRIPT = 'document.documentElement.classList.add("dark")';
const FILES: Record<string, string> = {
  'site/index.html': `<script>${SCRIPT}</script><script src="/docs/assets/app.a1.js"></script>`,
  'site/404.html': 'No such page',
  'site/guides/start.html': 'Start',
  'site/assets/app.a1.js': 'app()',
  'site/llms.txt': 'Für Modelle',
  'secret.txt': 'secret',
};

const folder = useTempFolder();
let server: Receiver | undefined;

beforeEach(() => {
  for (const [path, text] of Object.entries(FILES)) folder.write(path, text);
});
afterEach(() => server?.close());

async function serve(site = folder.at('site')) {
  const app = new Koa();
  app.use(createDocsSite({ publicUrl: 'http://localhost', folder: site }).routes());
  const receiver = await receiveHttp(app.callback());
  server = receiver;
  // Unlike fetch, it sends the path as it is.
  return async (path: string, headers: Record<string, string> = {}) => {
    const options = { host: '127.0.0.1', port: receiver.port, path, headers, agent: false };
    const [response]: IncomingMessage[] = await once(request(options).end(), 'response');
    if (response === undefined) throw new Error('There is no response.');
    const { statusCode: status, headers: sent } = response;
    return { status, headers: sent, body: await text(response) };
  };
}

test('the address of a page has no ending, and the page may run only its own scripts', async () => {
  const get = await serve();
  expect(await get('/docs')).toMatchObject({ status: 302, headers: { location: '/docs/' } });
  const home = await get('/docs/');
  expect(home).toMatchObject({ status: 200, body: FILES['site/index.html'] });
  const policy = String(home.headers['content-security-policy']);
  expect(policy).toMatch(/script-src 'self' 'sha256-[\w+/]{43}='; /);
  expect(policy).not.toMatch(/script-src[^;]*unsafe/);
  expect(await get('/docs/guides/start')).toMatchObject({ status: 200, body: 'Start' });
  expect(await get('/docs/llms.txt')).toMatchObject({
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: 'Für Modelle',
  });
});

test('no address is framed, runs an injected script, or is open to other sites', async () => {
  const get = await serve();
  for (const path of ['/docs/', '/docs/nowhere', '/docs/llms.txt']) {
    const { headers } = await get(path);
    const policy = String(headers['content-security-policy']);
    expect(policy).not.toContain('unsafe-');
    expect(policy).toContain("frame-ancestors 'none'");
    expect(headers).toMatchObject({
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('camera=()'),
    });
  }
});

test('browsers revalidate a page each time, and cache files with a hash in their name forever', async () => {
  const get = await serve();
  const { headers } = await get('/docs/');
  expect(headers['cache-control']).toBe('no-cache');
  const again = await get('/docs/', { 'If-None-Match': String(headers.etag) });
  expect(again).toMatchObject({ status: 304, body: '' });
  expect(await get('/docs/assets/app.a1.js')).toMatchObject({
    headers: { 'cache-control': 'public, max-age=31536000, immutable' },
  });
});

test.each([
  ...['/docs/nowhere', '/docs/../secret.txt', '/docs/..%2fsecret.txt'],
  ...['/docs/%2e%2e/secret.txt', '/docs/..%5csecret.txt'],
])('the missing address %s shows the page 404', async (path) => {
  const get = await serve();
  const { status, body, headers } = await get(path);
  expect({ status, hasSecret: body.includes('secret') }).toEqual({ status: 404, hasSecret: false });
  if (body === 'No such page') expect(headers['cache-control']).toBe('no-store');
});

test('an installation without a documentation site says so', async () => {
  const get = await serve(folder.at('nowhere'));
  expect(await get('/docs/')).toMatchObject({
    status: 404,
    body: expect.stringContaining('This installation has no documentation site.'),
  });
});
