import { randomUUID } from 'node:crypto';
import { useVisitor } from '../support/dashboard';
import { useInbox } from '../support/hook';
import { useAccount, useService } from '../support/service';

const service = useService();
const shop = useAccount(service);
const owner = useVisitor(service, shop);
const inbox = useInbox();

const path = (rest: string) => `/dashboard/sandbox/webhooks${rest}`;
const secretIn = (html: string) => /whsec_[\w-]{43}/.exec(html)?.[0];
const list = () => service.stores.endpoints.list(shop.account_id, false);

const add = (once: string, changes: Record<string, string> = {}) =>
  owner.post(path('/endpoints/new'), {
    ...{ once, url: inbox.url, description: 'Books', events: 'payout.sent' },
    ...changes,
  });

test('an endpoint is added once, changed, tested, disabled and deleted on its own page', async () => {
  const once = randomUUID();
  const added = await add(once);
  expect(added.status).toBe(200);
  expect(secretIn(added.html)).toBeDefined();
  // A form that is sent twice adds one endpoint.
  expect(secretIn((await add(once)).html)).toBeUndefined();
  const [endpoint, ...others] = await list();
  expect(others).toEqual([]);
  const page = path(`/endpoints/${endpoint?.endpoint_id}`);
  expect((await owner.get(path(''))).html).toContain(page);
  const shown = await owner.get(page);
  expect(shown.html).toContain('Books');
  expect(secretIn(shown.html)).toBeUndefined();
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
])('%j is refused with the reason', async (changes, reason) => {
  const { status } = await add(randomUUID(), changes);
  expect(status).toBe(303);
  expect((await owner.get(path('/endpoints/new'))).html).toContain(reason);
  expect(await list()).toEqual([]);
});
