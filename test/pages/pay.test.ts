import { randomBytes } from 'node:crypto';
import { type PayServer, startPayServer } from './pay-server';

let server: PayServer;
beforeAll(async () => {
  server = await startPayServer();
});
afterAll(async () => {
  await server.stop();
});
beforeEach(() => {
  server.clock.aheadMs = 0;
});

interface Answer {
  status: number;
  location: string | null;
  cookie: string;
  headers: Headers;
  text: string;
}

/** A browser's request, redirects not followed; `cookie` is what an earlier answer set. */
async function ask(method: string, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}${path}`, { method, headers, redirect: 'manual' });
  const answer: Answer = {
    status: response.status,
    location: response.headers.get('location'),
    cookie: (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '',
    headers: response.headers,
    text: await response.text(),
  };
  return answer;
}

const open = async (token: string) => {
  const answer = await ask('POST', `/pay/${token}`);
  return { cookie: answer.cookie };
};

describe('the page before it is opened', () => {
  it('shows shop, amount, method and reference, escaped, with the sandbox banner', async () => {
    const { token } = await server.insert({ reference: '<script>alert(1)</script>' });
    const { status, text } = await ask('GET', `/pay/${token}`);
    expect(status).toBe(200);
    expect(text).toContain('Tulip &amp; Sons &lt;Flowers');
    expect(text).toContain('€49.50');
    expect(text).toContain('Continue to iDEAL');
    expect(text).toContain('&lt;script>alert(1)');
    expect(text).not.toContain('<script>');
    expect(text).toContain('no money moves');
  });

  it('has no sandbox banner in live', async () => {
    const { token } = await server.insert({ livemode: true });
    expect((await ask('GET', `/pay/${token}`)).text).not.toContain('no money moves');
  });

  it('is not burnt by looking: GET and HEAD leave it unopened and set no cookie', async () => {
    const { token, payment } = await server.insert();
    for (const method of ['GET', 'HEAD', 'GET']) {
      const { status, cookie } = await ask(method, `/pay/${token}`);
      expect([status, cookie]).toEqual([200, '']);
    }
    expect((await server.payments.get(payment._id))?.browser_hash).toBeNull();
  });

  it('carries the headers that keep it from being framed, cached or scripted', async () => {
    const { token } = await server.insert();
    const { headers } = await ask('GET', `/pay/${token}`);
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

describe('opening', () => {
  it('goes to the bank and binds the page to this browser by a cookie of which only the hash is kept', async () => {
    const { token, payment } = await server.insert();
    const { status, location, headers, cookie } = await ask('POST', `/pay/${token}`);
    expect([status, location]).toEqual([303, payment.session_url]);
    expect(headers.get('set-cookie')).toMatch(
      /^pay_browser=[\w-]{43}; Path=\/pay; Max-Age=604800; HttpOnly; SameSite=Lax$/,
    );
    const stored = JSON.stringify(await server.payments.get(payment._id));
    expect(stored).not.toContain(cookie.split('=')[1]);
  });

  it('lets exactly one of twenty browsers in', async () => {
    const { token } = await server.insert();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask('POST', `/pay/${token}`)),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 410)).toHaveLength(19);
  });

  it('lets the same browser continue, and another neither look nor open', async () => {
    const { token, payment } = await server.insert();
    const mine = await open(token);
    expect((await ask('GET', `/pay/${token}`, mine)).status).toBe(200);
    const again = await ask('POST', `/pay/${token}`, mine);
    expect([again.status, again.location]).toEqual([303, payment.session_url]);
    const other = { cookie: `pay_browser=${randomBytes(32).toString('base64url')}` };
    for (const headers of [{}, other]) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await ask(method, `/pay/${token}`, headers);
        expect(status).toBe(410);
        expect(text).toContain('used already');
        expect(text).not.toContain('Tulip');
      }
    }
  });

  it('keeps the cookie of a browser that paid before', async () => {
    const first = await server.insert();
    const second = await server.insert();
    const mine = await open(first.token);
    expect((await ask('POST', `/pay/${second.token}`, mine)).cookie).toBe(mine.cookie);
    expect((await ask('GET', `/pay/${first.token}`, mine)).status).toBe(200);
  });

  it('waits where the bank is slow, then leads there', async () => {
    const { token, payment } = await server.insert({ status: 'created', session_url: null });
    const opened = await ask('POST', `/pay/${token}`);
    expect([opened.status, opened.location]).toEqual([303, `/pay/${token}/wait`]);
    const mine = { cookie: opened.cookie };
    const waiting = await ask('GET', `/pay/${token}/wait`, mine);
    expect(waiting.text).toContain('<progress');
    expect(waiting.text).toContain('<noscript><meta http-equiv="refresh" content="2"/></noscript>');
    expect(JSON.parse((await ask('GET', `/pay/${token}/status`, mine)).text)).toEqual({
      status: 'created',
      next: null,
    });
    const session_url = 'http://localhost:9/late';
    await server.set(payment._id, { status: 'awaiting_customer', session_url });
    const { text } = await ask('GET', `/pay/${token}/status`, mine);
    expect(JSON.parse(text)).toEqual({ status: 'awaiting_customer', next: session_url });
    expect((await ask('GET', `/pay/${token}/wait`, mine)).text).toContain(`0;url=${session_url}`);
  });

  it('does not tell the session to a browser that has not opened it', async () => {
    const { token } = await server.insert();
    const { text } = await ask('GET', `/pay/${token}/status`);
    expect(JSON.parse(text)).toEqual({ status: 'awaiting_customer', next: null });
  });
});

describe('refusals', () => {
  it.each([['x'], ['A'.repeat(43)], [`${'A'.repeat(43)}=`], ['%00'], ['$ne']])(
    'answers 404 to the unknown token %s',
    async (token) => {
      for (const method of ['GET', 'POST']) {
        expect((await ask(method, `/pay/${token}`)).status).toBe(404);
      }
    },
  );

  it.each([['GET'], ['POST']])('answers 410 to %s when the time is over', async (method) => {
    const { token, payment } = await server.insert();
    server.clock.aheadMs = 1_800_001;
    const { status, text } = await ask(method, `/pay/${token}`);
    expect(status).toBe(410);
    expect(text).toContain('expired');
    expect((await server.payments.get(payment._id))?.browser_hash).toBeNull();
  });

  it('answers 410 to an expired payment, with the way back only for the browser that opened it', async () => {
    const { token, payment } = await server.insert();
    const mine = await open(token);
    await server.set(payment._id, { status: 'expired' });
    const bound = await ask('GET', `/pay/${token}`, mine);
    expect(bound.status).toBe(410);
    expect(bound.text).toContain(payment.error_url);
    expect((await ask('GET', `/pay/${token}`)).text).not.toContain('shop.example');
  });

  it.each([
    ['settled', 'You have paid', 'success_url'],
    ['authorized', 'You have paid', 'success_url'],
    ['failed', 'did not go through', 'error_url'],
    ['cancelled', 'was cancelled', 'error_url'],
  ] as const)('tells the bound browser that it is %s and everyone else nothing', async (...row) => {
    const [status, words, url] = row;
    const { token, payment } = await server.insert();
    const mine = await open(token);
    await server.set(payment._id, { status });
    const bound = await ask('GET', `/pay/${token}`, mine);
    expect(bound.status).toBe(200);
    expect(bound.text).toContain(words);
    expect(bound.text).toContain(`href="${payment[url]}"`);
    expect((await ask('POST', `/pay/${token}`, mine)).status).toBe(200);
    expect((await ask('GET', `/pay/${token}`)).status).toBe(410);
    const unopened = await server.insert({ status });
    const stranger = await ask('GET', `/pay/${unopened.token}`);
    expect(stranger.status).toBe(410);
    expect(stranger.text).not.toContain('shop.example');
  });

  it.each([
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'same-site' }],
    [{ origin: 'https://evil.example' }],
  ])('refuses a POST that another site sent: %j', async (headers) => {
    const { token, payment } = await server.insert();
    for (const path of [`/pay/${token}`, `/pay/${token}/cancel`]) {
      expect((await ask('POST', path, headers)).status).toBe(403);
    }
    expect(await server.payments.get(payment._id)).toMatchObject({
      browser_hash: null,
      status: 'awaiting_customer',
    });
  });

  it('takes no address from the request', async () => {
    const { token, payment } = await server.insert();
    const query = '?url=https://evil.example&next=//evil.example&return_url=https://evil.example';
    const { location, cookie } = await ask('POST', `/pay/${token}${query}`);
    expect(location).toBe(payment.session_url);
    const back = await ask('GET', `/pay/return/${payment._id}${query}`, { cookie });
    expect(back.text).not.toContain('evil');
  });
});

describe('abandoning', () => {
  it('cancels and leads to error_url, also when pressed twice', async () => {
    const { token, payment } = await server.insert();
    const { status, location, cookie } = await ask('POST', `/pay/${token}/cancel`);
    expect([status, location]).toEqual([303, payment.error_url]);
    expect(server.cancelled).toContain(payment._id);
    const again = await ask('POST', `/pay/${token}/cancel`, { cookie });
    expect(again.text).toContain(payment.error_url);
  });

  it('is refused to another browser', async () => {
    const { token, payment } = await server.insert();
    await open(token);
    expect((await ask('POST', `/pay/${token}/cancel`)).status).toBe(410);
    expect(server.cancelled).not.toContain(payment._id);
  });

  it('leads to the waiting page when it is too late, and from there to success_url', async () => {
    const { token, payment } = await server.insert();
    const mine = await open(token);
    const cancel = server.payments.byToken;
    // The bank's approval lands between the page's own read and the cancel.
    server.payments.byToken = async (hash) => {
      const before = await cancel(hash);
      await server.set(payment._id, { status: 'authorized' });
      return before;
    };
    const { location } = await ask('POST', `/pay/${token}/cancel`, mine).finally(() => {
      server.payments.byToken = cancel;
    });
    expect(location).toBe(`/pay/return/${payment._id}`);
    const back = await ask('GET', `/pay/return/${payment._id}`, mine);
    expect([back.status, back.location]).toEqual([303, payment.success_url]);
  });
});

describe('the way back from the bank', () => {
  it('says nothing about the payment to a browser without its cookie', async () => {
    const { token, payment } = await server.insert({ status: 'settled' });
    await open(token);
    const stranger = { cookie: `pay_browser=${randomBytes(32).toString('base64url')}` };
    const unknown = await ask('GET', '/pay/return/0199a8e0-0000-7000-8000-000000000000', stranger);
    for (const headers of [{}, stranger]) {
      const { status, text } = await ask('GET', `/pay/return/${payment._id}`, headers);
      expect(status).toBe(200);
      expect(text).toBe(unknown.text);
      expect((await ask('GET', `/pay/return/${payment._id}/status`, headers)).status).toBe(404);
    }
  });

  it('waits with progress, the way back to the bank and a way out', async () => {
    const { token, payment } = await server.insert();
    const mine = await open(token);
    const { status, text } = await ask('GET', `/pay/return/${payment._id}`, mine);
    expect(status).toBe(200);
    expect(text).toContain('aria-live="polite"');
    expect(text).toContain(`href="${payment.session_url}"`);
    expect(text).toContain(`action="/pay/return/${payment._id}/cancel"`);
    const cancel = await ask('POST', `/pay/return/${payment._id}/cancel`, mine);
    expect([cancel.status, cancel.location]).toEqual([303, payment.error_url]);
  });

  it.each([
    ['authorized', 'success_url'],
    ['settled', 'success_url'],
    ['failed', 'error_url'],
    ['cancelled', 'error_url'],
    ['expired', 'error_url'],
  ] as const)('leads a payment that is %s to %s', async (status, url) => {
    const { token, payment } = await server.insert();
    const mine = await open(token);
    await server.set(payment._id, { status });
    const { location } = await ask('GET', `/pay/return/${payment._id}`, mine);
    expect(location).toBe(payment[url]);
    const { text } = await ask('GET', `/pay/return/${payment._id}/status`, mine);
    expect(JSON.parse(text)).toEqual({ status, next: payment[url] });
  });
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
    const { text } = await ask('GET', `/pay/${token}`);
    const css = /href="(\/pay\/assets\/pay\.css\?v=[0-9a-f]+)"/.exec(text)?.[1] ?? '';
    const { status, headers } = await ask('GET', css);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
    expect(headers.get('cache-control')).toContain('immutable');
    const etag = headers.get('etag') ?? '';
    const fresh = await ask('GET', '/pay/assets/pay.css', {
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
  const { status, text, headers } = await ask('GET', `/pay/${token}`).finally(() => {
    server.payments.byToken = byToken;
  });
  expect([status, headers.get('retry-after')]).toEqual([503, '5']);
  expect(text).toContain('trouble is on our side');
  expect(text).not.toContain('MongoDB');
});
