import { randomBytes } from 'node:crypto';
import { usePayServer } from './pay-server';

const server = usePayServer();

describe('abandoning', () => {
  it('cancels and leads to error_url, also when pressed twice', async () => {
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
    const cancel = server.payments.byToken;
    // The bank's approval lands between the page's own read and the cancel.
    server.payments.byToken = async (hash) => {
      const before = await cancel(hash);
      await server.set(payment._id, { status: 'authorized' });
      return before;
    };
    const { location } = await server.ask('POST', `/pay/${token}/cancel`, mine).finally(() => {
      server.payments.byToken = cancel;
    });
    expect(location).toBe(`/pay/return/${payment._id}`);
    const back = await server.ask('GET', `/pay/return/${payment._id}`, mine);
    expect([back.status, back.location]).toEqual([303, payment.success_url]);
  });
});

describe('the way back from the bank', () => {
  it('says nothing about the payment to a browser without its cookie', async () => {
    const { token, payment } = await server.insert({ status: 'settled' });
    await server.open(token);
    const stranger = { cookie: `pay_browser=${randomBytes(32).toString('base64url')}` };
    const unknown = await server.ask(
      'GET',
      '/pay/return/0199a8e0-0000-7000-8000-000000000000',
      stranger,
    );
    for (const headers of [{}, stranger]) {
      const { status, text } = await server.ask('GET', `/pay/return/${payment._id}`, headers);
      expect(status).toBe(200);
      expect(text).toBe(unknown.text);
      expect((await server.ask('GET', `/pay/return/${payment._id}/status`, headers)).status).toBe(
        404,
      );
    }
  });

  it('waits with progress, the way back to the bank and a way out', async () => {
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
