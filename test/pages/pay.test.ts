import { randomBytes } from 'node:crypto';
import { startPayServer, usePayServer } from './pay-server';

const server = usePayServer();

const OTHER_BROWSER = { cookie: `pay_browser=${randomBytes(32).toString('base64url')}` };

describe('the page before it is opened', () => {
  it('shows shop, amount, method and reference, escaped, and a banner in the sandbox only', async () => {
    const { token } = await server.insert({ reference: '<script>alert(1)</script>' });
    const { status, text } = await server.ask('GET', `/pay/${token}`);
    expect(status).toBe(200);
    expect(text).toContain('Tulip &amp; Sons &lt;Flowers');
    expect(text).toContain('€49.50');
    expect(text).toContain('Continue to iDEAL');
    expect(text).toContain('&lt;script>alert(1)');
    expect(text).not.toContain('<script>');
    expect(text).toContain('no money moves');
    const live = await server.insert({ livemode: true });
    expect((await server.ask('GET', `/pay/${live.token}`)).text).not.toContain('no money moves');
  });

  it('stays unopened by GET and HEAD', async () => {
    const { token, payment } = await server.insert();
    for (const method of ['GET', 'HEAD', 'GET']) {
      expect((await server.ask(method, `/pay/${token}`)).status).toBe(200);
    }
    expect((await server.payments.get(payment._id))?.browser_hash).toBeNull();
  });
});

describe('opening', () => {
  it('works again when the answer to the first POST is lost: the cookie comes with the page', async () => {
    const { token, payment } = await server.insert();
    const { cookie } = await server.ask('GET', `/pay/${token}`);
    await server.ask('POST', `/pay/${token}`, { cookie });
    const again = await server.ask('POST', `/pay/${token}`, { cookie });
    expect([again.status, again.location]).toEqual([303, payment.session_url]);
  });

  it('leads to the bank and binds the page to the browser by a cookie, of which only the hash is stored', async () => {
    const { token, payment } = await server.insert();
    const { status, location, headers, cookie } = await server.ask('POST', `/pay/${token}`);
    expect([status, location]).toEqual([303, payment.session_url]);
    expect(headers.get('set-cookie')).toMatch(
      /^pay_browser=[\w-]{43}; Path=\/pay; Max-Age=604800; HttpOnly; SameSite=Lax$/,
    );
    const stored = JSON.stringify(await server.payments.get(payment._id));
    expect(stored).not.toContain(cookie.split('=')[1]);
  });

  it('lets exactly one of twenty browsers in', async () => {
    const { token } = await server.insert();
    const posts = Array.from({ length: 20 }, () => server.ask('POST', `/pay/${token}`));
    const statuses = (await Promise.all(posts)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([303, ...Array(19).fill(410)]);
  });

  it('lets the same browser continue, and another neither look nor open nor cancel', async () => {
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    expect((await server.ask('GET', `/pay/${token}`, mine)).status).toBe(200);
    const again = await server.ask('POST', `/pay/${token}`, mine);
    expect([again.status, again.location]).toEqual([303, payment.session_url]);
    for (const headers of [{}, OTHER_BROWSER]) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await server.ask(method, `/pay/${token}`, headers);
        expect([status, text.includes('used already')]).toEqual([410, true]);
        expect(text).not.toContain('Tulip');
      }
      expect((await server.ask('POST', `/pay/${token}/cancel`, headers)).status).toBe(410);
    }
    expect(server.cancelled).not.toContain(payment._id);
  });

  it('waits for a slow bank, then leads there', async () => {
    const { token, payment } = await server.insert({ status: 'created', session_url: null });
    const opened = await server.ask('POST', `/pay/${token}`);
    expect([opened.status, opened.location]).toEqual([303, `/pay/${token}/wait`]);
    const get = (path: string) =>
      server.ask('GET', `/pay/${token}/${path}`, { cookie: opened.cookie });
    const { text } = await get('wait');
    expect(text).toContain('<progress');
    expect(text).toContain('<noscript><meta http-equiv="refresh" content="2"/></noscript>');
    const state = async () => JSON.parse((await get('status')).text);
    expect(await state()).toEqual({ status: 'created', next: null });
    const session_url = 'http://localhost:9/late';
    await server.set(payment._id, { status: 'awaiting_customer', session_url });
    expect(await state()).toEqual({ status: 'awaiting_customer', next: session_url });
    expect((await get('wait')).text).toContain(`0;url=${session_url}`);
  });

  it('is necessary before the status names the session at the bank', async () => {
    const { token } = await server.insert();
    const { text } = await server.ask('GET', `/pay/${token}/status`);
    expect(JSON.parse(text)).toEqual({ status: 'awaiting_customer', next: null });
  });
});

describe('the pay page', () => {
  it.each(['x', 'A'.repeat(43), `${'A'.repeat(43)}=`, '%00', '$ne'])(
    'answers 404 to the unknown token %s',
    async (token) => {
      for (const method of ['GET', 'POST']) {
        expect((await server.ask(method, `/pay/${token}`)).status).toBe(404);
      }
    },
  );

  it.each(['GET', 'POST'])('answers 410 to %s when the time is over', async (method) => {
    const { token, payment } = await server.insert();
    server.clock.aheadMs = 1_800_001;
    const { status, text } = await server.ask(method, `/pay/${token}`);
    expect([status, text.includes('expired')]).toEqual([410, true]);
    expect((await server.payments.get(payment._id))?.browser_hash).toBeNull();
  });

  it.each([
    ['settled', 200, 'You have paid', 'success_url'],
    ['authorized', 200, 'You have paid', 'success_url'],
    ['failed', 200, 'did not go through', 'error_url'],
    ['cancelled', 200, 'was cancelled', 'error_url'],
    ['expired', 410, 'expired', 'error_url'],
  ] as const)(
    'shows that a payment is %s only to the browser that opened it, and leads to its shop',
    async (...row) => {
      const [status, code, words, url] = row;
      const { token, payment } = await server.insert();
      const mine = await server.open(token);
      await server.set(payment._id, { status });
      const bound = await server.ask('GET', `/pay/${token}`, mine);
      expect(bound.status).toBe(code);
      expect(bound.text).toContain(words);
      expect(bound.text).toContain(`href="${payment[url]}"`);
      expect((await server.ask('POST', `/pay/${token}`, mine)).status).toBe(code);
      const back = `/pay/return/${payment._id}`;
      expect((await server.ask('GET', back, mine)).location).toBe(payment[url]);
      const { text } = await server.ask('GET', `${back}/status`, mine);
      expect(JSON.parse(text)).toEqual({ status, next: payment[url] });
      const unopened = await server.insert({ status });
      for (const unbound of [token, unopened.token]) {
        const stranger = await server.ask('GET', `/pay/${unbound}`);
        expect(stranger.status).toBe(410);
        expect(stranger.text).not.toContain('shop.example');
      }
    },
  );

  it.each([
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'same-site' }],
    [{ origin: 'https://evil.example' }],
  ])('refuses a POST that another site sends: %j', async (headers) => {
    const { token, payment } = await server.insert();
    for (const path of [`/pay/${token}`, `/pay/${token}/cancel`]) {
      expect((await server.ask('POST', path, headers)).status).toBe(403);
    }
    expect(await server.payments.get(payment._id)).toMatchObject({
      ...{ browser_hash: null, status: 'awaiting_customer' },
    });
  });

  it('ignores addresses in the request', async () => {
    const { token, payment } = await server.insert();
    const query = '?url=https://evil.example&next=//evil.example&return_url=https://evil.example';
    const { location, cookie } = await server.ask('POST', `/pay/${token}${query}`);
    expect(location).toBe(payment.session_url);
    const back = await server.ask('GET', `/pay/return/${payment._id}${query}`, { cookie });
    expect(back.text).not.toContain('evil');
  });
});

describe('cancelling', () => {
  it('leads to error_url, also when it is repeated', async () => {
    const { token, payment } = await server.insert();
    const { status, location, cookie } = await server.ask('POST', `/pay/${token}/cancel`);
    expect([status, location]).toEqual([303, payment.error_url]);
    expect(server.cancelled).toContain(payment._id);
    const again = await server.ask('POST', `/pay/${token}/cancel`, { cookie });
    expect(again.text).toContain(payment.error_url);
  });

  it('leads to the waiting page when it is too late, and from there to success_url', async () => {
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    const byToken = server.payments.byToken;
    // The bank's approval arrives between the page's own read and the cancel.
    server.payments.byToken = async (hash) => {
      const before = await byToken(hash);
      await server.set(payment._id, { status: 'authorized' });
      return before;
    };
    const { location } = await server.ask('POST', `/pay/${token}/cancel`, mine).finally(() => {
      server.payments.byToken = byToken;
    });
    expect(location).toBe(`/pay/return/${payment._id}`);
    const back = await server.ask('GET', `/pay/return/${payment._id}`, mine);
    expect([back.status, back.location]).toEqual([303, payment.success_url]);
  });
});

describe('the return page', () => {
  it('says nothing about the payment to a browser without its cookie', async () => {
    const { token, payment } = await server.insert({ status: 'settled' });
    await server.open(token);
    const missing = '/pay/return/0199a8e0-0000-7000-8000-000000000000';
    const unknown = await server.ask('GET', missing, OTHER_BROWSER);
    for (const headers of [{}, OTHER_BROWSER]) {
      const { status, text } = await server.ask('GET', `/pay/return/${payment._id}`, headers);
      expect([status, text]).toEqual([200, unknown.text]);
      const state = await server.ask('GET', `/pay/return/${payment._id}/status`, headers);
      expect(state.status).toBe(404);
    }
  });

  it('waits with progress, a link back to the bank and a way to cancel', async () => {
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    const { status, text } = await server.ask('GET', `/pay/return/${payment._id}`, mine);
    expect(status).toBe(200);
    expect(text).toContain('aria-live="polite"');
    expect(text).toContain(`href="${payment.session_url}"`);
    expect(text).toContain(`action="/pay/return/${payment._id}/cancel"`);
    const cancel = await server.ask('POST', `/pay/return/${payment._id}/cancel`, mine);
    expect([cancel.status, cancel.location]).toEqual([303, payment.error_url]);
  });
});

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
    ['pt-BR', 'NL', 'pt-PT'],
    ['en-US,en;q=0.9,nl;q=0.8', 'NL', 'en'],
    // Where the browser names none of ours, the country decides.
    ['fi-FI,fi;q=0.9', 'NL', 'nl'],
    ['fi, *;q=0.1', 'MX', 'es'],
    ['fi', 'FI', 'en'],
    // A client that names no language is no payer's browser.
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
    expect(await read('fr, en-GB;q=0.9, en;q=0.8')).toContain('>3 décembre à 15:04 UTC<');
    expect(await read('en-GB, en;q=0.8')).toContain('>3 December at 15:04 UTC<');
    for (const [language, ...words] of [
      ['en', '€1,234,567.89', '>December 3 at 3:04 PM UTC<'],
      ['de', '1.234.567,89 €', '>3. Dezember um 15:04 UTC<', 'Weiter zu iDEAL'],
      ['pl', '1 234 567,89 €', '>3 grudnia 15:04 UTC<'],
    ] as const) {
      const page = await read(language);
      for (const each of words) expect(page).toContain(each);
    }
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
      `<img class="logo" src="/pay/logos/${hash}" width="512" height="128" alt/>`,
    );
    const logo = await server.ask('GET', `/pay/logos/${hash}`);
    expect([logo.status, logo.text]).toEqual([200, 'an image']);
    const css = await server.ask('GET', '/pay/accents/ff6600.css');
    expect(css.text).toContain('--fill: #ff6600;');
    for (const [{ headers }, type] of [
      [logo, 'image/png'],
      [css, 'text/css; charset=utf-8'],
    ] as const) {
      expect(headers.get('content-type')).toBe(type);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(headers.get('set-cookie')).toBeNull();
    }
  });

  it.each([
    ...[`logos/${'cd'.repeat(16)}`, `logos/${hash}.webp`, 'logos/%00'],
    ...['accents/ff6600', 'accents/FF6600.css', 'accents/ff6600;}.css', 'accents/red.css'],
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
