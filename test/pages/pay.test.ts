import { randomBytes } from 'node:crypto';
import { usePayServer } from './pay-server';

const server = usePayServer();

describe('the page before it is opened', () => {
  it('shows shop, amount, method and reference, escaped, with the sandbox banner', async () => {
    const { token } = await server.insert({ reference: '<script>alert(1)</script>' });
    const { status, text } = await server.ask('GET', `/pay/${token}`);
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
    expect((await server.ask('GET', `/pay/${token}`)).text).not.toContain('no money moves');
  });

  it('is not burnt by looking: GET and HEAD leave it unopened', async () => {
    const { token, payment } = await server.insert();
    for (const method of ['GET', 'HEAD', 'GET']) {
      const { status } = await server.ask(method, `/pay/${token}`);
      expect(status).toBe(200);
    }
    expect((await server.payments.get(payment._id))?.browser_hash).toBeNull();
  });
});

describe('opening', () => {
  it('goes on when the answer to the first POST was lost: the cookie came with the page', async () => {
    const { token, payment } = await server.insert();
    const { cookie } = await server.ask('GET', `/pay/${token}`);
    await server.ask('POST', `/pay/${token}`, { cookie });
    const again = await server.ask('POST', `/pay/${token}`, { cookie });
    expect([again.status, again.location]).toEqual([303, payment.session_url]);
  });

  it('goes to the bank and binds the page to this browser by a cookie of which only the hash is kept', async () => {
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
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => server.ask('POST', `/pay/${token}`)),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 410)).toHaveLength(19);
  });

  it('lets the same browser continue, and another neither look nor open', async () => {
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    expect((await server.ask('GET', `/pay/${token}`, mine)).status).toBe(200);
    const again = await server.ask('POST', `/pay/${token}`, mine);
    expect([again.status, again.location]).toEqual([303, payment.session_url]);
    const other = { cookie: `pay_browser=${randomBytes(32).toString('base64url')}` };
    for (const headers of [{}, other]) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await server.ask(method, `/pay/${token}`, headers);
        expect(status).toBe(410);
        expect(text).toContain('used already');
        expect(text).not.toContain('Tulip');
      }
    }
  });

  it('keeps the cookie of a browser that paid before', async () => {
    const first = await server.insert();
    const second = await server.insert();
    const mine = await server.open(first.token);
    expect((await server.ask('POST', `/pay/${second.token}`, mine)).cookie).toBe(mine.cookie);
    expect((await server.ask('GET', `/pay/${first.token}`, mine)).status).toBe(200);
  });

  it('waits where the bank is slow, then leads there', async () => {
    const { token, payment } = await server.insert({ status: 'created', session_url: null });
    const opened = await server.ask('POST', `/pay/${token}`);
    expect([opened.status, opened.location]).toEqual([303, `/pay/${token}/wait`]);
    const mine = { cookie: opened.cookie };
    const waiting = await server.ask('GET', `/pay/${token}/wait`, mine);
    expect(waiting.text).toContain('<progress');
    expect(waiting.text).toContain('<noscript><meta http-equiv="refresh" content="2"/></noscript>');
    expect(JSON.parse((await server.ask('GET', `/pay/${token}/status`, mine)).text)).toEqual({
      status: 'created',
      next: null,
    });
    const session_url = 'http://localhost:9/late';
    await server.set(payment._id, { status: 'awaiting_customer', session_url });
    const { text } = await server.ask('GET', `/pay/${token}/status`, mine);
    expect(JSON.parse(text)).toEqual({ status: 'awaiting_customer', next: session_url });
    expect((await server.ask('GET', `/pay/${token}/wait`, mine)).text).toContain(
      `0;url=${session_url}`,
    );
  });

  it('does not tell the session to a browser that has not opened it', async () => {
    const { token } = await server.insert();
    const { text } = await server.ask('GET', `/pay/${token}/status`);
    expect(JSON.parse(text)).toEqual({ status: 'awaiting_customer', next: null });
  });
});

describe('refusals', () => {
  it.each([['x'], ['A'.repeat(43)], [`${'A'.repeat(43)}=`], ['%00'], ['$ne']])(
    'answers 404 to the unknown token %s',
    async (token) => {
      for (const method of ['GET', 'POST']) {
        expect((await server.ask(method, `/pay/${token}`)).status).toBe(404);
      }
    },
  );

  it.each([['GET'], ['POST']])('answers 410 to %s when the time is over', async (method) => {
    const { token, payment } = await server.insert();
    server.clock.aheadMs = 1_800_001;
    const { status, text } = await server.ask(method, `/pay/${token}`);
    expect(status).toBe(410);
    expect(text).toContain('expired');
    expect((await server.payments.get(payment._id))?.browser_hash).toBeNull();
  });

  it('answers 410 to an expired payment, with the way back only for the browser that opened it', async () => {
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    await server.set(payment._id, { status: 'expired' });
    const bound = await server.ask('GET', `/pay/${token}`, mine);
    expect(bound.status).toBe(410);
    expect(bound.text).toContain(payment.error_url);
    expect((await server.ask('GET', `/pay/${token}`)).text).not.toContain('shop.example');
  });

  it.each([
    ['settled', 'You have paid', 'success_url'],
    ['authorized', 'You have paid', 'success_url'],
    ['failed', 'did not go through', 'error_url'],
    ['cancelled', 'was cancelled', 'error_url'],
  ] as const)('tells the bound browser that it is %s and everyone else nothing', async (...row) => {
    const [status, words, url] = row;
    const { token, payment } = await server.insert();
    const mine = await server.open(token);
    await server.set(payment._id, { status });
    const bound = await server.ask('GET', `/pay/${token}`, mine);
    expect(bound.status).toBe(200);
    expect(bound.text).toContain(words);
    expect(bound.text).toContain(`href="${payment[url]}"`);
    expect((await server.ask('POST', `/pay/${token}`, mine)).status).toBe(200);
    expect((await server.ask('GET', `/pay/${token}`)).status).toBe(410);
    const unopened = await server.insert({ status });
    const stranger = await server.ask('GET', `/pay/${unopened.token}`);
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
      expect((await server.ask('POST', path, headers)).status).toBe(403);
    }
    expect(await server.payments.get(payment._id)).toMatchObject({
      browser_hash: null,
      status: 'awaiting_customer',
    });
  });

  it('takes no address from the request', async () => {
    const { token, payment } = await server.insert();
    const query = '?url=https://evil.example&next=//evil.example&return_url=https://evil.example';
    const { location, cookie } = await server.ask('POST', `/pay/${token}${query}`);
    expect(location).toBe(payment.session_url);
    const back = await server.ask('GET', `/pay/return/${payment._id}${query}`, { cookie });
    expect(back.text).not.toContain('evil');
  });
});
