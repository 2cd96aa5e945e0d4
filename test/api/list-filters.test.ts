import { call, idealPayment, settledPayment } from '../support/http';
import { useService } from '../support/service';
import { makeLikeness, payments } from './list-setting';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();

const get = (key: string, path: string, query: Record<string, string> = {}) =>
  call(service.url, 'GET', `${path}?${new URLSearchParams(query)}`, { key });
const create = (key: string, changes: object = {}) =>
  call(service.url, 'POST', '/v1/payments', { key, body: idealPayment({ ...changes }) });
const refund = async (key: string, payment_id: string): Promise<string> =>
  (await call(service.url, 'POST', '/v1/refunds', { key, body: { payment_id, amount: 1 } })).body
    .id;

test('payments created at the same time come in pages of 7, each exactly once', async () => {
  const { key } = await service.account();
  const made: string[] = [];
  const creator = async () => {
    for (let i = 0; i < 6; i += 1) {
      made.push((await create(key)).body.id);
    }
  };
  await Promise.all(Array.from({ length: 20 }, creator));
  expect(made).toHaveLength(120);
  const walk = (limit: string) => walkPages((page) => get(key, '/v1/payments', page), { limit });
  const pages = await walk('7');
  expect(pages.slice(0, -1).every((page) => page.length === 7)).toBe(true);
  expect(pages).toHaveLength(Math.ceil(120 / 7));
  const seen = pages.flat();
  expect(seen.toSorted()).toEqual(made.toSorted());
  expect((await walk('100')).flat()).toEqual(seen);
});

test('thousands of payments of one millisecond come each exactly once', async () => {
  const { key, path, insert } = await payments(service, await makeLikeness(service));
  const made = await insert(2_000);
  const pages = await walkPages((page) => get(key, path, page), { limit: '93' });
  expect(pages.flat()).toHaveLength(2_000);
  expect(pages.flat().toSorted()).toEqual(made.toSorted());
});

test('status, method and reference filter payments exactly, alone and together', async () => {
  const { key } = await service.account();
  const card = { method: 'visa', reference: 'A-1' };
  const one = (await create(key, { reference: 'A-1' })).body.id;
  const two = (await create(key, card)).body.id;
  const three = (await create(key, { reference: 'a-1' })).body.id;
  const four = (await create(key, { reference: 'A-10 & more/50%+é' })).body.id;
  await call(service.url, 'POST', `/v1/payments/${two}/cancel`, { key });
  const list = (query: Record<string, string>) => get(key, '/v1/payments', query);
  const found = async (query: Record<string, string>) => ids((await list(query)).body.data);
  expect(await found({ reference: 'A-1' })).toEqual([two, one]);
  expect(await found({ reference: 'A-10 & more/50%+é' })).toEqual([four]);
  expect(await found({ reference: '.*' })).toEqual([]);
  expect(await found({ reference: '' })).toEqual([]);
  expect(await found({ method: 'visa' })).toEqual([two]);
  expect(await found({ status: 'cancelled' })).toEqual([two]);
  expect(await found({ status: 'awaiting_customer' })).toEqual([four, three, one]);
  expect(await found({ status: 'settled' })).toEqual([]);
  expect(await found({ status: 'cancelled', method: 'ideal', reference: 'A-1' })).toEqual([]);
  const ideal = await walkPages(list, { limit: '1', method: 'ideal' });
  expect(ideal.flat()).toEqual([four, three, one]);
});

test('a reference that others use too finds the own payments only', async () => {
  const [{ key }, other] = [await service.account(), await service.account()];
  const mine = (await create(key)).body.id;
  await create(other.key);
  const { body } = await get(key, '/v1/payments', { reference: 'order-1001' });
  expect(ids(body.data)).toEqual([mine]);
});

test.each([
  ['method', 'IDEAL'],
  ['reference', 'x'.repeat(256)],
  ['reference[$ne]', '1'],
])('of payments, %s=%s is refused', async (field, value) => {
  const { key } = await service.account();
  expectRefusal(await get(key, '/v1/payments', { [field]: value }), 'invalid_request', [field]);
});

test('the list of a payment has its own refunds only', async () => {
  const { key } = await service.account();
  const [first, second] = [await settledPayment(service, key), await settledPayment(service, key)];
  const own = await refund(key, first.id);
  const other = await refund(key, second.id);
  const listed = async (path: string) => ids((await get(key, path)).body.data);
  expect(await listed(`/v1/payments/${first.id}/refunds`)).toEqual([own]);
  expect(await listed(`/v1/payments/${second.id}/refunds`)).toEqual([other]);
  expect(await listed('/v1/refunds')).toEqual([other, own]);
});

test('a payment that nobody has has no list', async () => {
  const { key } = await service.account();
  expectRefusal(await get(key, '/v1/payments/some-id/refunds'), 'payment_not_found');
});
