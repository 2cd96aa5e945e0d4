import { openLanguage } from '../../src/pages/language';
import { LANGUAGE_CODES } from '../../src/pages/texts';
import { startPayServer, usePayServer } from './pay-server';

const server = usePayServer();

it('answers a page with headers against frames, caches and foreign scripts', async () => {
  const { token } = await server.insert();
  const { headers } = await server.ask('GET', `/pay/${token}`);
  const csp = headers.get('content-security-policy') ?? '';
  expect(csp).toContain("default-src 'none'");
  expect(csp).toContain("script-src 'self';");
  expect(csp).toContain("frame-ancestors 'none'");
  expect(csp).toContain("form-action 'self' https: http://localhost:9 https://shop.example;");
  expect(Object.fromEntries(headers)).toMatchObject({
    ...{ 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff' },
    ...{ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' },
  });
  expect(headers.get('strict-transport-security')).toBeNull();
});

it('adds no words from addresses of a merchant or a bank to the content security policy', async () => {
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

describe('the language of a page', () => {
  it.each([
    ['de-AT,de;q=0.9,en;q=0.8', 'NL', 'de'],
    ['en;q=0.5, fr;q=0.9', 'NL', 'fr'],
    ['pt-BR', 'NL', 'pt-PT'],
    ['PL', 'NL', 'pl'],
    ['en-US,en;q=0.9,nl;q=0.8', 'NL', 'en'],
    // Where the browser names none of ours, the country decides.
    ['fi-FI,fi;q=0.9', 'NL', 'nl'],
    ['fi, *;q=0.1', 'MX', 'es'],
    ['fi', 'FI', 'en'],
    ['fi', null, 'en'],
    // A client that names no language is no payer's browser.
    ['*', 'NL', 'en'],
    ['', 'NL', 'en'],
    ['de;q=0, it;q=0.1', 'NL', 'it'],
    ['constructor, ;;q=x, \u00e9', 'NL', 'nl'],
  ])('for %j and a payment from %s is %s', async (accepted, country, locale) => {
    const { token } = await server.insert({ country });
    const { text, headers } = await server.ask('GET', `/pay/${token}`, {
      'accept-language': accepted,
    });
    expect(text).toContain(`<html lang="${locale}">`);
    expect(headers.get('content-language')).toBe(locale);
  });

  it('decides how amounts, dates and names are written', async () => {
    const { token } = await server.insert({
      amount: 123_456_789,
      expires_at: '2100-12-03T15:04:05.000Z',
    });
    const read = async (language: string) => {
      const headers = { 'accept-language': language };
      return (await server.ask('GET', `/pay/${token}`, headers)).text.replaceAll(/\s/g, ' ');
    };
    const pages = { de: await read('de'), en: await read('en'), pl: await read('pl') };
    expect(await read('fr, en-GB;q=0.9, en;q=0.8')).toContain('>3 décembre à 15:04 UTC<');
    expect(await read('en-GB, en;q=0.8')).toContain('>3 December at 15:04 UTC<');
    expect(pages.en).toContain('€1,234,567.89');
    expect(pages.en).toContain('>December 3 at 3:04 PM UTC<');
    expect(pages.de).toContain('1.234.567,89 €');
    expect(pages.de).toContain('>3. Dezember um 15:04 UTC<');
    expect(pages.de).toContain('Weiter zu iDEAL');
    expect(pages.pl).toContain('1 234 567,89 €');
    expect(pages.pl).toContain('>3 grudnia 15:04 UTC<');
  });

  it('can be switched, which is remembered and does not open the payment', async () => {
    const { token, payment } = await server.insert();
    const first = await server.ask('GET', `/pay/${token}`, { 'accept-language': 'de' });
    expect(first.text).toContain('<a href="?lang=it" lang="it" hreflang="it"');
    expect(first.headers.getSetCookie()).toHaveLength(1);
    const switched = await server.ask('GET', `/pay/${token}?lang=it`, { cookie: first.cookie });
    const [browser, language = ''] = switched.headers.getSetCookie();
    expect(browser).toContain(first.cookie);
    expect(language).toBe('pay_language=it; Path=/pay; Max-Age=604800; HttpOnly; SameSite=Lax');
    expect((await server.payments.get(payment._id))?.browser_hash).toBeNull();
    const cookie = `${first.cookie}; pay_language=it`;
    await server.ask('POST', `/pay/${token}`, { cookie });
    const back = await server.ask('GET', `/pay/return/${payment._id}`, {
      cookie,
      'accept-language': 'de',
    });
    expect(back.text).toContain('<html lang="it">');
    const refused = await server.ask('GET', `/pay/${token}`, { cookie: 'pay_language=it' });
    expect([refused.status, refused.text.includes('già stato utilizzato')]).toEqual([410, true]);
  });

  it.each(['lang=xx', 'lang=de&lang=fr', 'lang=__proto__', 'lang='])(
    'stays the same for the unknown choice ?%s',
    async (query) => {
      const { token } = await server.insert();
      const answer = await server.ask('GET', `/pay/${token}?${query}`, { 'accept-language': 'en' });
      expect(answer.text).toContain('<html lang="en">');
      expect(answer.headers.getSetCookie()).toHaveLength(1);
    },
  );

  it('can be switched on the answer to a POST', async () => {
    const { token } = await server.insert({ status: 'settled' });
    const { text } = await server.ask('POST', `/pay/${token}/cancel`, { 'accept-language': 'fr' });
    expect(text).toContain('Ce paiement est clos');
    expect(text).toContain(`href="/pay/${token}?lang=de"`);
  });
});

it.each(LANGUAGE_CODES)('translates every page into %s', async (code) => {
  const headers = { 'accept-language': code };
  const { token, payment } = await server.insert({ method: 'gone', session_url: null });
  const { cookie } = await server.open(token);
  const own = { ...headers, cookie };
  const texts = [
    await server.ask('GET', `/pay/${token}`, own),
    await server.ask('GET', `/pay/${token}/wait`, own),
    await server.ask('GET', `/pay/return/${payment._id}`, own),
    await server.ask('GET', `/pay/${token}`, headers),
    await server.ask('GET', '/pay/x', headers),
    await server.ask('GET', '/pay/return/x', headers),
    await server.ask('POST', `/pay/${token}`, { ...headers, 'sec-fetch-site': 'cross-site' }),
  ];
  for (const status of ['settled', 'failed', 'cancelled', 'expired'] as const) {
    await server.set(payment._id, { status });
    texts.push(await server.ask('GET', `/pay/${token}`, own));
    texts.push(await server.ask('GET', `/pay/${token}`, headers));
  }
  for (const { text } of texts) {
    expect(text).toContain(`<html lang="${openLanguage(code).locale}">`);
    expect(text).not.toMatch(/\{\w+\}|undefined/);
  }
});

it('makes the cookie Secure and turns HSTS on where pages are https', async () => {
  const secure = await startPayServer('https://pay.example');
  const { token } = await secure.insert();
  const { headers } = await secure.ask('POST', `/pay/${token}`).finally(secure.stop);
  expect(headers.get('set-cookie')).toMatch(
    /^__Secure-pay_browser=.*Path=\/pay;.*HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(headers.get('strict-transport-security')).toContain('max-age=31536000');
});

it('lets browsers cache an asset forever under its hash, and revalidate it without', async () => {
  const { token } = await server.insert();
  const { text } = await server.ask('GET', `/pay/${token}`);
  const css = /href="(\/pay\/assets\/pay\.css\?v=[0-9a-f]+)"/.exec(text)?.[1] ?? '';
  const { status, headers } = await server.ask('GET', css);
  expect([status, headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
  expect(headers.get('cache-control')).toContain('immutable');
  const fresh = await server.ask('GET', '/pay/assets/pay.css', {
    ...{ 'if-none-match': headers.get('etag') ?? '', 'cache-control': 'max-age=0' },
  });
  expect([fresh.status, fresh.headers.get('cache-control')]).toEqual([304, 'no-cache']);
});

describe('the brand of a page', () => {
  const hash = 'ab'.repeat(16);

  it('is a color and a logo at addresses of their content, which browsers cache forever', async () => {
    const image = Buffer.from('an image');
    server.logos.set(hash, image);
    Object.assign(server.brand, { accent: '#ff6600', logo: { hash, width: 512, height: 128 } });
    const { token } = await server.insert();
    const { text } = await server.ask('GET', `/pay/${token}`);
    expect(text).toContain('<link rel="stylesheet" href="/pay/accents/ff6600.css"/>');
    expect(text).toContain(
      `<img class="logo" src="/pay/logos/${hash}.webp" width="512" height="128" alt/>`,
    );
    const logo = await server.ask('GET', `/pay/logos/${hash}.webp`);
    expect([logo.status, logo.text]).toEqual([200, 'an image']);
    const css = await server.ask('GET', '/pay/accents/ff6600.css');
    expect(css.text).toContain('--fill: #ff6600;');
    for (const [{ headers }, type] of [
      [logo, 'image/webp'],
      [css, 'text/css; charset=utf-8'],
    ] as const) {
      expect(headers.get('content-type')).toBe(type);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(headers.get('set-cookie')).toBeNull();
    }
  });

  it('adds nothing to the page until the merchant sets one', async () => {
    const { token } = await server.insert();
    const { text } = await server.ask('GET', `/pay/${token}`);
    expect(text).not.toMatch(/accents|<img/);
    expect(text).toContain('class="mark"');
  });

  it.each([
    `logos/${'cd'.repeat(16)}.webp`,
    `logos/${hash}`,
    'logos/x.webp',
    'logos/%00.webp',
    'accents/ff6600',
    'accents/FF6600.css',
    'accents/ff6600;}.css',
    'accents/red.css',
  ])('has no address %s', async (path) => {
    const { status, headers } = await server.ask('GET', `/pay/${path}`);
    expect([status, headers.get('cache-control')]).toEqual([404, 'no-store']);
  });
});

it('answers an outage with a page that names no cause', async () => {
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
