import { randomUUID } from 'node:crypto';
import { copyEvent } from '../../src/store/deliveries';
import { useVisitor } from '../support/dashboard';
import { useInbox } from '../support/hook';
import { useAccount, useService } from '../support/service';

const service = useService();
const shop = useAccount(service);
const owner = useVisitor(service, shop);
const inbox = useInbox();

const path = (rest: string) => `/dashboard/sandbox/webhooks${rest}`;
const findSecret = (html: string) => /whsec_[\w-]{43}/.exec(html)?.[0];
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
  expect(findSecret(added.html)).toBeDefined();
  // A form that is sent twice adds one endpoint.
  expect(findSecret((await add(once)).html)).toBeUndefined();
  const [endpoint, ...others] = await list();
  expect(others).toEqual([]);
  const page = path(`/endpoints/${endpoint?.endpoint_id}`);
  expect((await owner.get(path(''))).html).toContain(page);
  const shown = await owner.get(page);
  expect(shown.html).toContain('Books');
  expect(findSecret(shown.html)).toBeUndefined();
  const url = `${inbox.url}/moved`;
  const fields = { url, description: '', events: 'payout.sent' };
  expect((await owner.post(`${page}/save`, fields)).status).toBe(303);
  expect(await list()).toMatchObject([{ url, description: null, enabled_events: ['payout.sent'] }]);
  const tested = await owner.post(`${page}/test`, { type: 'payout.sent' });
  expect(tested.html).toContain('The test was acknowledged');
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
  [{ url: 'http://10.0.0.1/' }, '10.0.0.1 is a private address'],
  [{ events: '' }, 'Choose at least one event type.'],
])(
  'refuses %j with the reason and leaves the form as it was filled in',
  async (changes, reason) => {
    const once = randomUUID();
    const { status, html } = await add(once, changes);
    expect(status).toBe(400);
    expect(html).toContain(reason);
    expect(html).toContain('value="Books"');
    expect(html).toContain(once);
    expect(await list()).toEqual([]);
  },
);

test('a refused change leaves the endpoint and the form as they were', async () => {
  await add(randomUUID());
  const before = await list();
  const page = path(`/endpoints/${before[0]?.endpoint_id}`);
  const fields = { url: 'http://10.0.0.1/', description: 'Sales', events: 'payout.sent' };
  const { status, html } = await owner.post(`${page}/save`, fields);
  expect(status).toBe(400);
  expect(html).toContain('10.0.0.1 is a private address');
  expect(html).toContain('value="Sales"');
  expect(await list()).toEqual(before);
});

test('the pages of an event with several endpoints show each delivery', async () => {
  await add(randomUUID(), { url: `${inbox.url}/other` });
  const [, other] = await list();
  const test = await owner.post(path('/test'), { type: 'payout.sent' });
  const event_id = /deliveries\/(evt_[0-9a-f-]+)/.exec(test.html)?.[1] ?? '';
  const event = await service.stores.events.get(event_id);
  if (event === null || other === undefined) throw new Error('There is no event or endpoint.');
  const { endpoint_id } = other;
  const delivery = { ...event.delivery, endpoint_id, status: 'exhausted' } as const;
  await service.stores.deliveries.addRow(copyEvent(event, { ...delivery, attempts: 12 }));
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
