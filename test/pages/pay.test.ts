import { randomBytes } from 'node:crypto';
import type { PaymentDocument } from '../../src/store/payments';
import { startPayServer, usePayServer } from './pay-server';

const server = usePayServer();

type Headers = Record<string, string>;
const OTHER_BROWSER = { cookie: `pay_browser=${randomBytes(32).toString('base64url')}` };
const EVERY_OTHER = [{}, OTHER_BROWSER];

/** A payment, and how browsers ask for its page and for what is below it. */
async function insert(change: Partial<PaymentDocument> = {}) {
  const { token, payment } = await server.insert(change);
  const path = `/pay/${token}`;
  const ask = (method: string) => (headers?: Headers, rest?: string) =>
    server.ask(method, `${path}${rest ?? ''}`, headers);
  const back = `/pay/return/${payment._id}`;
  return { ...{ token, payment, path, back, ask }, get: ask('GET'), post: ask('POST') };
}

const read = async (id: string) => await server.payments.get(id);

it('a page shows shop, amount, method and reference, escaped, before it is opened, and a banner in the sandbox only', async () => {
  const { payment, ask, get } = await insert({ reference: '<script>alert(1)</script>' });
  const { status, text } = await get();
  expect(status).toBe(200);
  for (const words of [
    ...['Tulip &amp; Sons &lt;Flowers', '€49.50', 'Continue to iDEAL', '&lt;script>alert(1)'],
    'no money moves',
  ]) {
    expect(text).toContain(words);
  }
  expect(text).not.toContain('<script>');
  expect((await ask('HEAD')()).status).toBe(200);
  expect((await read(payment._id))?.browser_hash).toBeNull();
  const live = await insert({ livemode: true });
  expect((await live.get()).text).not.toContain('no money moves');
});

describe('opening', () => {
  it('leads to the bank and binds the page to the browser by a cookie, of which only the hash is stored', async () => {
    const { payment, post } = await insert();
    const { status, location, headers, cookie } = await post();
    expect([status, location]).toEqual([303, payment.session_url]);
    expect(headers.get('set-cookie')).toMatch(
      /^pay_browser=[\w-]{43}; Path=\/pay; Max-Age=604800; HttpOnly; SameSite=Lax$/,
    );
    expect(JSON.stringify(await read(payment._id))).not.toContain(cookie.split('=')[1]);
  });

  it('works again when the answer to the first POST is lost: the cookie comes with the page', async () => {
    const { payment, get, post } = await insert();
    const { cookie } = await get();
    await post({ cookie });
    const again = await post({ cookie });
    expect([again.status, again.location]).toEqual([303, payment.session_url]);
  });

  it('lets exactly one of twenty browsers in', async () => {
    const { post } = await insert();
    const posts = Array.from({ length: 20 }, () => post());
    const statuses = (await Promise.all(posts)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([303, ...Array(19).fill(410)]);
  });

  it('lets the same browser continue, and another neither look nor open nor cancel', async () => {
    const { token, payment, ask, get, post } = await insert();
    // Nobody has opened it yet.
    const early = { status: 'awaiting_customer', next: null };
    expect(JSON.parse((await get({}, '/status')).text)).toEqual(early);
    const mine = await server.open(token);
    expect((await get(mine)).status).toBe(200);
    const again = await post(mine);
    expect([again.status, again.location]).toEqual([303, payment.session_url]);
    for (const headers of EVERY_OTHER) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await ask(method)(headers);
        expect([status, text.includes('used already')]).toEqual([410, true]);
        expect(text).not.toContain('Tulip');
      }
      expect((await post(headers, '/cancel')).status).toBe(410);
    }
    expect(server.cancelled).not.toContain(payment._id);
  });

  it('waits for a slow bank, then leads there', async () => {
    const { payment, path, get, post } = await insert({ status: 'created', session_url: null });
    const { status, location, cookie } = await post();
    expect([status, location]).toEqual([303, `${path}/wait`]);
    const { text } = await get({ cookie }, '/wait');
    expect(text).toContain('<progress');
    expect(text).toContain('<noscript><meta http-equiv="refresh" content="2"/></noscript>');
    const state = async () => JSON.parse((await get({ cookie }, '/status')).text);
    expect(await state()).toEqual({ status: 'created', next: null });
    const session_url = 'http://localhost:9/late';
    await server.set(payment._id, { status: 'awaiting_customer', session_url });
    expect(await state()).toEqual({ status: 'awaiting_customer', next: session_url });
    expect((await get({ cookie }, '/wait')).text).toContain(`0;url=${session_url}`);
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
    const { payment, ask } = await insert();
    server.clock.aheadMs = 1_800_001;
    const { status, text } = await ask(method)();
    expect([status, text.includes('expired')]).toEqual([410, true]);
    expect((await read(payment._id))?.browser_hash).toBeNull();
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
      const { token, payment, back, get, post } = await insert();
      const mine = await server.open(token);
      await server.set(payment._id, { status });
      const bound = await get(mine);
      expect(bound.status).toBe(code);
      expect(bound.text).toContain(words);
      expect(bound.text).toContain(`href="${payment[url]}"`);
      expect((await post(mine)).status).toBe(code);
      expect((await server.ask('GET', back, mine)).location).toBe(payment[url]);
      const { text } = await server.ask('GET', `${back}/status`, mine);
      expect(JSON.parse(text)).toEqual({ status, next: payment[url] });
      const unopened = await insert({ status });
      for (const stranger of [await get(), await unopened.get()]) {
        expect(stranger.status).toBe(410);
        expect(stranger.text).not.toContain('shop.example');
      }
    },
  );

  it('refuses a POST that another site sends, and ignores addresses in the request', async () => {
    const { payment, back, post } = await insert();
    const foreign: Headers[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
    ];
    for (const headers of foreign) {
      for (const rest of ['', '/cancel']) expect((await post(headers, rest)).status).toBe(403);
    }
    const untouched = { browser_hash: null, status: 'awaiting_customer' };
    expect(await read(payment._id)).toMatchObject(untouched);
    const query = '?url=https://evil.example&next=//evil.example&return_url=https://evil.example';
    const { location, cookie } = await post({}, query);
    expect(location).toBe(payment.session_url);
    expect((await server.ask('GET', `${back}${query}`, { cookie })).text).not.toContain('evil');
  });
});

describe('cancelling', () => {
  it('leads to error_url, also when it is repeated', async () => {
    const { payment, post } = await insert();
    const { status, location, cookie } = await post({}, '/cancel');
    expect([status, location]).toEqual([303, payment.error_url]);
    expect(server.cancelled).toContain(payment._id);
    expect((await post({ cookie }, '/cancel')).text).toContain(payment.error_url);
  });

  it('leads to the waiting page when it is too late, and from there to success_url', async () => {
    const { token, payment, back, post } = await insert();
    const mine = await server.open(token);
    const byToken = server.payments.byToken;
    // The bank's approval arrives between the page's own read and the cancel.
    server.payments.byToken = async (hash) => {
      const before = await byToken(hash);
      await server.set(payment._id, { status: 'authorized' });
      return before;
    };
    const { location } = await post(mine, '/cancel').finally(() => {
      server.payments.byToken = byToken;
    });
    expect(location).toBe(back);
    const { status, location: shop } = await server.ask('GET', back, mine);
    expect([status, shop]).toEqual([303, payment.success_url]);
  });
});

describe('the return page', () => {
  it('says nothing about the payment to a browser without its cookie', async () => {
    const { token, back } = await insert({ status: 'settled' });
    await server.open(token);
    const missing = '/pay/return/0199a8e0-0000-7000-8000-000000000000';
    const unknown = await server.ask('GET', missing, OTHER_BROWSER);
    for (const headers of EVERY_OTHER) {
      const { status, text } = await server.ask('GET', back, headers);
      expect([status, text]).toEqual([200, unknown.text]);
      expect((await server.ask('GET', `${back}/status`, headers)).status).toBe(404);
    }
  });

  it('waits with progress, a link back to the bank and a way to cancel', async () => {
    const { token, payment, back } = await insert();
    const mine = await server.open(token);
    const { status, text } = await server.ask('GET', back, mine);
    expect(status).toBe(200);
    expect(text).toContain('aria-live="polite"');
    expect(text).toContain(`href="${payment.session_url}"`);
    expect(text).toContain(`action="${back}/cancel"`);
    const cancel = await server.ask('POST', `${back}/cancel`, mine);
    expect([cancel.status, cancel.location]).toEqual([303, payment.error_url]);
  });
});

it('the headers of a page forbid frames, caches and foreign scripts, and quote no words of a merchant or a bank', async () => {
  const { headers } = await (await insert()).get();
  const csp = headers.get('content-security-policy') ?? '';
  for (const rule of [
    "default-src 'none'",
    "script-src 'self';",
    "frame-ancestors 'none'",
    "form-action 'self' https: http://localhost:9 https://shop.example;",
  ]) {
    expect(csp).toContain(rule);
  }
  expect(Object.fromEntries(headers)).toMatchObject({
    ...{ 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff' },
    ...{ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' },
  });
  expect(headers.get('strict-transport-security')).toBeNull();
  const { get } = await insert({
    session_url: 'no address',
    success_url: 'https://shop.example;sandbox/thanks',
    error_url: "https://'unsafe-inline'/",
  });
  const answer = await get();
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-security-policy')).toContain(
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
    const { get } = await insert({ country });
    const { text, headers } = await get({ 'accept-language': accepted });
    expect(text).toContain(`<html lang="${locale}">`);
    expect(headers.get('content-language')).toBe(locale);
  });

  it('decides how amounts, dates and names are written', async () => {
    const { get } = await insert({ amount: 123_456_789, expires_at: '2100-12-03T15:04:05.000Z' });
    for (const [language, ...words] of [
      ['fr, en-GB;q=0.9, en;q=0.8', '>3 décembre à 15:04 UTC<'],
      ['en-GB, en;q=0.8', '>3 December at 15:04 UTC<'],
      ['en', '€1,234,567.89', '>December 3 at 3:04 PM UTC<'],
      ['de', '1.234.567,89 €', '>3. Dezember um 15:04 UTC<', 'Weiter zu iDEAL'],
      ['pl', '1 234 567,89 €', '>3 grudnia 15:04 UTC<'],
    ] as const) {
      const text = (await get({ 'accept-language': language })).text.replaceAll(/\s/g, ' ');
      for (const each of words) expect(text).toContain(each);
    }
  });

  it('can be switched, which is remembered and does not open the payment', async () => {
    const { payment, back, get, post } = await insert();
    const first = await get({ 'accept-language': 'de' });
    expect(first.text).toContain('<a href="?lang=it" lang="it" hreflang="it"');
    expect(first.headers.getSetCookie()).toHaveLength(1);
    const switched = await get({ cookie: first.cookie }, '?lang=it');
    const [browser, language = ''] = switched.headers.getSetCookie();
    expect(browser).toContain(first.cookie);
    expect(language).toBe('pay_language=it; Path=/pay; Max-Age=604800; HttpOnly; SameSite=Lax');
    expect((await read(payment._id))?.browser_hash).toBeNull();
    const cookie = `${first.cookie}; pay_language=it`;
    await post({ cookie });
    const { text } = await server.ask('GET', back, { cookie, 'accept-language': 'de' });
    expect(text).toContain('<html lang="it">');
    const refused = await get({ cookie: 'pay_language=it' });
    expect([refused.status, refused.text.includes('già stato utilizzato')]).toEqual([410, true]);
  });

  it('stays the same for an unknown choice', async () => {
    const { get } = await insert();
    for (const query of ['lang=xx', 'lang=de&lang=fr', 'lang=__proto__', 'lang=']) {
      const { text, headers } = await get({ 'accept-language': 'en' }, `?${query}`);
      expect([query, text]).toEqual([query, expect.stringContaining('<html lang="en">')]);
      expect(headers.getSetCookie()).toHaveLength(1);
    }
  });
});

it('the cookie is Secure and HSTS is on where pages are https', async () => {
  const secure = await startPayServer('https://pay.example');
  const { token } = await secure.insert();
  const { headers } = await secure.ask('POST', `/pay/${token}`).finally(secure.stop);
  expect(headers.get('set-cookie')).toMatch(
    /^__Secure-pay_browser=.*Path=\/pay;.*HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(headers.get('strict-transport-security')).toContain('max-age=31536000');
});

it('browsers cache an asset forever under its hash, and revalidate it without', async () => {
  const { text } = await (await insert()).get();
  const css = /href="(\/pay\/assets\/pay\.css\?v=[0-9a-f]+)"/.exec(text)?.[1] ?? '';
  const { status, headers } = await server.ask('GET', css);
  expect([status, headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
  expect(headers.get('cache-control')).toContain('immutable');
  const fresh = await server.ask('GET', '/pay/assets/pay.css', {
    ...{ 'if-none-match': headers.get('etag') ?? '', 'cache-control': 'max-age=0' },
  });
  expect([fresh.status, fresh.headers.get('cache-control')]).toEqual([304, 'no-cache']);
});

it('a page has a color and a logo of the merchant at addresses of their content, which browsers cache forever', async () => {
  const hash = 'ab'.repeat(16);
  server.logos.set(hash, Buffer.from('an image'));
  Object.assign(server.brand, { accent: '#ff6600', logo: { hash, width: 512, height: 128 } });
  const { text } = await (await insert()).get();
  const image = `<img class="logo" src="/pay/logos/${hash}" width="512" height="128" alt/>`;
  expect(text).toContain(image);
  expect(text).toContain('<link rel="stylesheet" href="/pay/accents/ff6600.css"/>');
  for (const [path, type, content] of [
    [`logos/${hash}`, 'image/png', /^an image$/],
    ['accents/ff6600.css', 'text/css; charset=utf-8', /--fill: #ff6600;/],
  ] as const) {
    const answer = await server.ask('GET', `/pay/${path}`);
    expect([answer.status, answer.text]).toEqual([200, expect.stringMatching(content)]);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      ...{ 'content-type': type, 'x-content-type-options': 'nosniff' },
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    });
    expect(answer.headers.get('set-cookie')).toBeNull();
  }
  for (const path of [
    ...[`logos/${'cd'.repeat(16)}`, `logos/${hash}.webp`, 'logos/%00', 'accents/ff6600'],
    ...['accents/FF6600.css', 'accents/ff6600;}.css', 'accents/red.css'],
  ]) {
    const { status, headers } = await server.ask('GET', `/pay/${path}`);
    expect([path, status, headers.get('cache-control')]).toEqual([path, 404, 'no-store']);
  }
});

it('an outage is answered with a page that names no cause', async () => {
  const { get } = await insert();
  const byToken = server.payments.byToken;
  server.payments.byToken = () => Promise.reject(new Error('MongoDB is away'));
  const { status, text, headers } = await get().finally(() => {
    server.payments.byToken = byToken;
  });
  expect([status, headers.get('retry-after')]).toEqual([503, '5']);
  expect(text).toContain('trouble is on our side');
  expect(text).not.toContain('MongoDB');
});
