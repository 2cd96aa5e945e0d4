import { randomUUID } from 'node:crypto';
import { buildEventSchema, EVENT_TYPES, type EventType } from '../../src/domain/webhook/event';
import { createEncrypter } from '../../src/encryption/encrypter';
import { sendTestEvent, type TestEventDeps } from '../../src/service/events/test-event';
import { buildDelivery } from '../../src/store/deliveries';
import { createEndpointLimits } from '../../src/webhooks/endpoint-limits';
import { postWebhook } from '../../src/webhooks/post';
import { verifySignature } from '../../src/webhooks/signature';
import { inOneWindow } from '../api/window';
import { openUser, openVisitor, readText, useVisitor } from '../support/dashboard';
import { buildEndpoint } from '../support/factories';
import { gate } from '../support/gate';
import { useInbox } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';

const service = useService();
const shop = useAccount(service);
const owner = useVisitor(service, shop);
const reader = useVisitor(service, shop, 'read_only');
const inbox = useInbox();

const path = (rest: string) => `/dashboard/sandbox/webhooks${rest}`;
const ALL = ['payment.settled', 'payment.awaiting_customer', 'payment.cancelled'];

/** Saves the endpoint; a form may hold a name several times. */
async function save(url: string, events = ALL, by = owner) {
  const form = new URLSearchParams({ csrf: by.csrf, url });
  for (const type of events) form.append('events', type);
  const headers = { Cookie: `dashboard=${by.secret}` };
  const to = `${service.url}${path('/endpoint')}`;
  const response = await fetch(to, { method: 'POST', headers, body: form, redirect: 'manual' });
  return { status: response.status, html: await response.text() };
}

const findEvent = (html: string) => /deliveries\/(evt_[0-9a-f-]+)/.exec(html)?.[1] ?? '';
const findSecret = (html: string) => /whsec_[\w-]{43}/.exec(html)?.[0] ?? '';

test('a test event shows what the receiver answered, and is not sent again', async () => {
  expect((await save(inbox.url)).status).toBe(303);
  Object.assign(inbox.answer, { status: 503, text: '<b>no</b>' });
  const bad = await owner.post(path('/test'), { type: 'payment.failed' });
  expect(readText(bad.html)).toMatch(/was not acknowledged.*HTTP 503/);
  expect(bad.html).toContain('&lt;b>no&lt;/b>');
  const event = findEvent(bad.html);
  const failed = await owner.get(path('/send-failed'));
  expect(readText(failed.html)).toContain('No event has failed since then.');
  const listed = await owner.get(path('/deliveries?status=exhausted'));
  expect(listed.html).toContain(event);
  const shown = readText((await owner.get(path(`/deliveries/${event}`))).html);
  expect(shown).toContain('A test: what it names does not exist.');
  expect(shown).not.toContain('Send again');
  expect((await owner.post(path('/test'), { type: 'nonsense' })).status).toBe(404);
});

test('deliveries are found by their resource, and all that failed are sent again', async () => {
  const { body: payment } = await shop.post('/v1/payments', idealPayment());
  const [event] = await eventually('the delivery', async () => {
    const filter = { account_id: shop.account_id, livemode: false, resource_id: payment.id };
    const { deliveries, events } = service.stores;
    const [row] = await deliveries.listByStatus({ ...filter, status: 'delivered', limit: 1 });
    return row !== undefined && (await events.getAll([row.event_id]));
  });
  const id = `${event?._id}`;
  for (const query of [payment.id, id]) {
    expect((await owner.get(path(`/deliveries?search=${query}`))).html).toContain(id);
  }
  expect((await owner.get(path('/deliveries?method=payout.sent'))).html).not.toContain(id);
  const deliveries = service.collection('deliveries');
  await deliveries.updateOne({ event_id: id }, { $set: { status: 'exhausted' } });
  inbox.clear();
  const counted = await owner.get(path('/send-failed'));
  expect(readText(counted.html)).toContain('1 event failed.');
  expect(inbox.received).toEqual([]);
  const from = /name="from"[^>]*value="([^"]+)"/.exec(counted.html)?.[1] ?? '';
  expect((await owner.post(path('/send-failed'), { from })).status).toBe(303);
  await eventually('the delivery', async () => inbox.received.length > 0);
  expect(inbox.received[0]?.body).toBe(event?.body);
});

test('a user who may not change the endpoint sees its host, without the token in its address', async () => {
  expect((await save(`${inbox.url}?token=t0ken`)).status).toBe(303);
  for (const page of [path(''), '/dashboard/sandbox/audit-log']) {
    expect((await owner.get(page)).html).toContain('t0ken');
    const { html } = await reader.get(page);
    expect(html).toContain(new URL(inbox.url).origin);
    expect(html).not.toContain('t0ken');
  }
});

test('without an endpoint nothing is sent and the page says so', async () => {
  const failed = await owner.get('/dashboard/live/webhooks/send-failed');
  expect(failed.location).toBe('/dashboard/live/webhooks');
  const page = await owner.get('/dashboard/live/webhooks');
  expect(readText(page.html)).toContain('Nothing to send it to');
  expect(page.html).not.toContain('Send test event');
  const none = await owner.confirm('/dashboard/live/webhooks/secret');
  expect(none.status).toBe(404);
});

test('the overview shows balances, today’s payments, webhooks and what needs attention', async () => {
  const shown = await service.account();
  const by = await openVisitor(service, await openUser(service.stores, shown.account_id));
  const empty = readText((await by.get('/dashboard/sandbox/overview')).html);
  expect(empty).toContain('No payment has settled in the last thirty days.');
  expect(empty).toContain('No endpoint is registered.');
  const payment = await shown.settledPayment();
  const stored = await service.stores.payments.get(payment.id);
  await service.stores.payments.setAttention(payment.id, {
    version: stored?.version ?? 0,
    attention: 'settlement_overdue',
    audit: null,
    attention_at: Date.now(),
  });
  const html = (await by.get('/dashboard/sandbox/overview')).html;
  const text = readText(html);
  const words = ['€10.50', '100.0 %', 'settlement overdue', 'Settled volume in EUR, 30 days'];
  for (const each of words) expect(text).toContain(each);
  expect(html).toContain(`/dashboard/sandbox/payments/${payment.id}`);
  expect(readText((await by.get('/dashboard/sandbox/balances')).html)).toContain('main EUR €10.50');
});

test(
  'pages are limited by their cost, for each session and for the account',
  inOneWindow(async () => {
    const { account_id } = await service.account();
    const user = await openUser(service.stores, account_id);
    const other = await openUser(service.stores, (await service.account()).account_id);
    await service.withApp({ visitCostsMax: { session: 25, account: 40 } }, async (url) => {
      const open = (each: typeof user) => openVisitor({ url, stores: service.stores }, each);
      const [first, second, third] = [await open(user), await open(user), await open(user)];
      const overview = '/dashboard/sandbox/overview';
      const statuses = async (visits: Promise<{ status: number }>[]) =>
        (await Promise.all(visits)).map(({ status }) => status).toSorted();
      const visits = [first.get(overview), first.get(overview), first.get(overview)];
      expect(await statuses(visits)).toEqual([200, 200, 429]);
      expect(await statuses([second.get(overview), second.get(overview)])).toEqual([200, 200]);
      const refused = await third.post(path('/test'), { type: 'payment.settled' });
      expect([refused.status, readText(refused.html)]).toEqual([
        429,
        expect.stringContaining('Too many pages at once'),
      ]);
      expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThanOrEqual(1);
      expect((await third.get('/dashboard/live/webhooks')).status).toBe(200);
      expect((await (await open(other)).get(overview)).status).toBe(200);
    });
  }),
);

describe('several endpoints', () => {
  const shop = useAccount(service);
  const owner = useVisitor(service, shop);
  const list = () => service.stores.endpoints.list(shop.account_id, false);

  const add = (once: string, changes: Record<string, string> = {}) =>
    owner.post(path('/endpoints/new'), {
      ...{ once, url: inbox.url, description: 'Books', events: 'payout.sent' },
      ...changes,
    });

  test('an endpoint is added once, then changed, tested, disabled and deleted on its own page', async () => {
    const once = randomUUID();
    const added = await add(once);
    expect(added.status).toBe(200);
    expect(findSecret(added.html)).not.toBe('');
    // A form that is sent twice adds one endpoint.
    expect(findSecret((await add(once)).html)).toBe('');
    const [endpoint, ...others] = await list();
    expect(others).toEqual([]);
    const page = path(`/endpoints/${endpoint?.endpoint_id}`);
    expect((await owner.get(path(''))).html).toContain(page);
    const shown = await owner.get(page);
    expect(shown.html).toContain('Books');
    expect(findSecret(shown.html)).toBe('');
    const url = `${inbox.url}/moved`;
    const fields = { url, description: '', events: 'payout.sent' };
    expect((await owner.post(`${page}/save`, fields)).status).toBe(303);
    expect(await list()).toMatchObject([
      { url, description: null, enabled_events: ['payout.sent'] },
    ]);
    expect((await owner.post(`${page}/status`, { status: 'disabled' })).status).toBe(303);
    expect(await list()).toMatchObject([{ disabled_reason: 'merchant' }]);
    expect((await owner.get(page)).html).toContain('Disabled');
    expect((await owner.post(`${page}/status`, { status: 'enabled' })).status).toBe(303);
    expect((await list())[0]?.disabled_reason).toBeUndefined();
    expect((await owner.confirm(`${page}/delete`)).status).toBe(303);
    expect(await list()).toEqual([]);
    expect((await owner.get(page)).status).toBe(404);
  });

  test.each([
    ['/endpoint', { url: 'http://10.0.0.1/' }, '10.0.0.1 is a private address'],
    ['/endpoint', { url: '"><script>alert(1)</script>' }, 'is not an absolute URL'],
    ['/endpoints/new', { events: '' }, 'Choose at least one event type.'],
    ['/endpoints/ID/save', { url: 'http://10.0.0.1/' }, '10.0.0.1 is a private address'],
  ])('%s refuses %j with the reason and leaves the form as it was filled in', async (...row) => {
    const [form, changes, reason] = row;
    if ((await list()).length === 0) await add(randomUUID());
    const before = await list();
    const [{ endpoint_id } = { endpoint_id: '' }] = before;
    const fields = { url: inbox.url, description: 'Sales', events: 'payout.sent', ...changes };
    const once = randomUUID();
    const to = path(form.replace('ID', endpoint_id));
    const { status, html } = await owner.post(to, { ...fields, once });
    expect([status, html.includes(reason), html.includes('<script>alert')]).toEqual([
      ...[400, true, false],
    ]);
    const typed = fields.url.replaceAll('"', '&quot;').replaceAll('<', '&lt;');
    expect(html).toContain(`value="${typed}"`);
    if (form !== '/endpoint') expect(html).toContain('value="Sales"');
    if (form === '/endpoints/new') expect(html).toContain(once);
    expect(await list()).toEqual(before);
  });

  test('the pages of an event with several endpoints show each delivery', async () => {
    await add(randomUUID(), { url: `${inbox.url}/other` });
    const [, other] = await list();
    const test = await owner.post(path('/test'), { type: 'payout.sent' });
    const event_id = findEvent(test.html);
    const event = await service.stores.events.get(event_id);
    if (event === null || other === undefined) throw new Error('There is no event or endpoint.');
    const { endpoint_id } = other;
    const row = buildDelivery(event, endpoint_id, 'exhausted');
    await service.stores.deliveries.insert([{ ...row, attempts: 12 }]);
    for (const at of [path('/deliveries'), path(`/deliveries/${event_id}`)]) {
      const { html } = await owner.get(at);
      expect(html).toMatch(
        /<span class="badge good">Delivered<.*<span class="badge bad">Exhausted</s,
      );
    }
    const { html } = await owner.get(path(`/deliveries/${event_id}`));
    expect(html).toContain(`/endpoints/${endpoint_id}"><code>${other.url}<`);
    expect((await owner.get(path(''))).html).toContain('Your oldest endpoint');
  });

  test('a disabled oldest endpoint is shown as such, and is not tested', async () => {
    const [oldest] = await list();
    const page = path(`/endpoints/${oldest?.endpoint_id}`);
    await owner.post(`${page}/status`, { status: 'disabled' });
    const { html } = await owner.get(path(''));
    expect(html).not.toContain('Send test event');
    expect(html).toMatch(/Your oldest endpoint.*Disabled.*All endpoints/s);
  });
});

describe('a test event', () => {
  const shop = useAccount(service);
  let deps: TestEventDeps;
  let secret: string;
  beforeAll(async () => {
    secret = (await buildEndpoint(shop, { url: inbox.url })).signing_secret;
    deps = {
      ...{ stores: service.stores, encrypter: createEncrypter(service.keys.seal) },
      ...{ limits: createEndpointLimits({ slots: 20 }), allowPrivate: true, post: postWebhook },
      ...{ audit: async () => {}, now: () => new Date() },
    };
  });
  const build = (type: EventType, livemode = false) => ({
    ...{ account_id: shop.account_id, livemode, type, request_id: 'req-1' },
  });
  const send = (type: EventType = 'payment.settled', livemode = false) =>
    sendTestEvent(deps, build(type, livemode));

  test('of each type is signed, has data.test, and is stored', async () => {
    for (const type of EVENT_TYPES) {
      inbox.clear();
      expect(await send(type)).toMatchObject({ outcome: 'delivered', status_code: 200 });
      const [{ headers, body } = { headers: {}, body: '' }] = inbox.received;
      expect(headers['service-event-type']).toBe(type);
      const header = String(headers['service-signature']);
      expect(verifySignature({ header, body, secret, now: Date.now() / 1_000 })).toBe(true);
      const event = buildEventSchema(type).strict().parse(JSON.parse(body));
      expect(event.data).toMatchObject({ test: true });
      expect(await service.stores.deliveries.forEvents([event.id])).toMatchObject([
        { status: 'delivered', attempts: 1, next_attempt_at: null },
      ]);
    }
  });

  test('has no attempt when its process dies before the answer', async () => {
    const died = { ...deps, post: () => Promise.reject(new Error('killed')) };
    await expect(sendTestEvent(died, build('payout.sent'))).rejects.toThrow('killed');
    const { events, deliveries } = service.stores;
    const owner = { account_id: shop.account_id, livemode: false };
    const [event] = await events.list({ ...owner, limit: 1 });
    expect(event?.type).toBe('payout.sent');
    expect(await deliveries.forEvents([event?._id ?? ''])).toMatchObject([
      { status: 'exhausted', attempts: 0 },
    ]);
  });

  test('needs an endpoint, and waits for no other that is being sent', async () => {
    await expect(send('payment.settled', true)).rejects.toMatchObject({ code: 'webhook_not_set' });
    const patient = { ...deps, limits: createEndpointLimits({ slots: 20 }) };
    const sendTwo = async () => {
      const { opened, release } = gate();
      inbox.answer.hold = opened;
      const both = [1, 2].map(() => sendTestEvent(patient, build('payment.failed')));
      await Promise.race(both).catch(() => {});
      release();
      return await Promise.allSettled(both);
    };
    // On a busy machine the answer may be held for longer than a test waits.
    const settled = await eventually('an answer in time', async () => {
      const both = await sendTwo();
      return both.every((one) => one.status === 'rejected' || one.value.error === null) && both;
    });
    expect(settled).toEqual(
      expect.arrayContaining([
        { status: 'rejected', reason: expect.objectContaining({ code: 'endpoint_busy' }) },
        { status: 'fulfilled', value: expect.objectContaining({ outcome: 'delivered' }) },
      ]),
    );
  });
});
