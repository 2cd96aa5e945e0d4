import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import Koa from 'koa';
import { createDocsSite } from '../../../src/pages/docs-site';
import { useTempFolder } from '../../unit/temp-folder';

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
let servers: Server[];

beforeEach(() => {
  servers = [];
  for (const [path, text] of Object.entries(FILES)) folder.write(path, text);
});
afterEach(() => {
  for (const server of servers) server.close();
});

async function serve(site = folder.at('site')) {
  const app = new Koa();
  app.use(createDocsSite({ publicUrl: 'http://localhost', folder: site }).routes());
  const server = createServer(app.callback());
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  // Unlike fetch, it sends the path as it is.
  return async (path: string, headers: Record<string, string> = {}) => {
    const response = await new Promise<IncomingMessage>((done, fail) => {
      const options = { host: '127.0.0.1', port, path, headers, agent: false };
      request(options, done).on('error', fail).end();
    });
    let body = '';
    for await (const chunk of response) body += String(chunk);
    return { status: response.statusCode, headers: response.headers, body };
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

test.each(['/docs/', '/docs/nowhere', '/docs/llms.txt'])(
  '%s is never framed, runs no injected script, and is isolated from other sites',
  async (path) => {
    const get = await serve();
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
  },
);

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
  '/docs/nowhere',
  '/docs/../secret.txt',
  '/docs/..%2fsecret.txt',
  '/docs/%2e%2e/secret.txt',
  '/docs/guides/../../secret.txt',
  '/docs/..%5csecret.txt',
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
