import { randomBytes } from 'node:crypto';
import { usePayServer } from './pay-server';

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

  it('lets the same browser continue, and another neither look nor open', async () => {
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
    }
  });

  it('keeps the cookie of a browser that paid before', async () => {
    const [first, second] = [await server.insert(), await server.insert()];
    const mine = await server.open(first.token);
    expect((await server.ask('POST', `/pay/${second.token}`, mine)).cookie).toBe(mine.cookie);
    expect((await server.ask('GET', `/pay/${first.token}`, mine)).status).toBe(200);
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
  ] as const)('shows that a payment is %s only to the browser that opened it', async (...row) => {
    const [status, code, words, url] = row;
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    await server.set(payment._id, { status });
    const bound = await server.ask('GET', `/pay/${token}`, mine);
    expect(bound.status).toBe(code);
    expect(bound.text).toContain(words);
    expect(bound.text).toContain(`href="${payment[url]}"`);
    expect((await server.ask('POST', `/pay/${token}`, mine)).status).toBe(code);
    const unopened = await server.insert({ status });
    for (const unbound of [token, unopened.token]) {
      const stranger = await server.ask('GET', `/pay/${unbound}`);
      expect(stranger.status).toBe(410);
      expect(stranger.text).not.toContain('shop.example');
    }
  });

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

  it('is refused to another browser', async () => {
    const { token, payment } = await server.insert();
    await server.open(token);
    expect((await server.ask('POST', `/pay/${token}/cancel`)).status).toBe(410);
    expect(server.cancelled).not.toContain(payment._id);
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

  it.each([
    ['authorized', 'success_url'],
    ['settled', 'success_url'],
    ['failed', 'error_url'],
    ['cancelled', 'error_url'],
    ['expired', 'error_url'],
  ] as const)('leads a payment that is %s to %s', async (status, url) => {
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    await server.set(payment._id, { status });
    const { location } = await server.ask('GET', `/pay/return/${payment._id}`, mine);
    expect(location).toBe(payment[url]);
    const { text } = await server.ask('GET', `/pay/return/${payment._id}/status`, mine);
    expect(JSON.parse(text)).toEqual({ status, next: payment[url] });
  });
});
