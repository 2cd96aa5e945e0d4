import { startPayServer, usePayServer } from './pay-server';

const server = usePayServer();

describe('every page', () => {
  it('carries the headers that keep it from being framed, cached or scripted', async () => {
    const { token } = await server.insert();
    const { headers } = await server.ask('GET', `/pay/${token}`);
    const csp = headers.get('content-security-policy') ?? '';
    expect(csp).toContain("default-src 'none'");
    expect(csp).toContain("script-src 'self';");
    expect(csp).toContain("frame-ancestors 'none'");
    expect(csp).toContain("form-action 'self' https: http://localhost:9 https://shop.example;");
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('strict-transport-security')).toBeNull();
  });
});

it('lets no address of a merchant or a bank add words to the policy', async () => {
  const { token } = await server.insert({
    session_url: 'no address',
    success_url: 'https://shop.example;sandbox/thanks',
    error_url: "https://'unsafe-inline'/",
  });
  const { status, headers } = await server.ask('GET', `/pay/${token}`);
  expect(status).toBe(200);
  expect(headers.get('content-security-policy')).toContain(
    "; form-action 'self' https: http:; frame-an",
  );
});

describe('the pages under https', () => {
  it('make the cookie Secure and turn HSTS on', async () => {
    const secure = await startPayServer('https://pay.example');
    const { token } = await secure.insert();
    const { headers } = await fetch(`${secure.url}/pay/${token}`, {
      method: 'POST',
      redirect: 'manual',
    }).finally(secure.stop);
    expect(headers.get('set-cookie')).toMatch(
      /^__Secure-pay_browser=.*Path=\/pay;.*HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(headers.get('strict-transport-security')).toContain('max-age=31536000');
  });
});

describe('assets', () => {
  it('are cached for good under their hash and revalidated without it', async () => {
    const { token } = await server.insert();
    const { text } = await server.ask('GET', `/pay/${token}`);
    const css = /href="(\/pay\/assets\/pay\.css\?v=[0-9a-f]+)"/.exec(text)?.[1] ?? '';
    const { status, headers } = await server.ask('GET', css);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
    expect(headers.get('cache-control')).toContain('immutable');
    const etag = headers.get('etag') ?? '';
    const fresh = await server.ask('GET', '/pay/assets/pay.css', {
      'if-none-match': etag,
      'cache-control': 'max-age=0',
    });
    expect([fresh.status, fresh.headers.get('cache-control')]).toEqual([304, 'no-cache']);
  });
});

it('answers trouble in words, not in JSON', async () => {
  const { token } = await server.insert();
  const byToken = server.payments.byToken;
  server.payments.byToken = () => Promise.reject(new Error('MongoDB is away'));
  const { status, text, headers } = await server.ask('GET', `/pay/${token}`).finally(() => {
    server.payments.byToken = byToken;
  });
  expect([status, headers.get('retry-after')]).toEqual([503, '5']);
  expect(text).toContain('trouble is on our side');
  expect(text).not.toContain('MongoDB');
});
