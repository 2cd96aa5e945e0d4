import { type Client, idealPayment } from '../support/http';
import { useService } from '../support/service';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();

const list = (shop: Client, path: string, query: Record<string, string> = {}) =>
  shop.get(`${path}?${new URLSearchParams(query)}`);
const create = (shop: Client, changes: object = {}) =>
  shop.post('/v1/payments', idealPayment({ ...changes }));

test('payments created at the same time come in pages of 7, each exactly once', async () => {
  const shop = await service.account();
  const made: string[] = [];
  const creator = async () => {
    for (let i = 0; i < 6; i += 1) {
      made.push((await create(shop)).body.id);
    }
  };
  await Promise.all(Array.from({ length: 20 }, creator));
  expect(made).toHaveLength(120);
  const walk = (limit: string) => walkPages((page) => list(shop, '/v1/payments', page), { limit });
  const pages = await walk('7');
  expect(pages.slice(0, -1).every((page) => page.length === 7)).toBe(true);
  expect(pages).toHaveLength(Math.ceil(120 / 7));
  const seen = pages.flat();
  expect(seen.toSorted()).toEqual(made.toSorted());
  expect((await walk('100')).flat()).toEqual(seen);
});

test('status, method and reference filter payments exactly, alone and together', async () => {
  const shop = await service.account();
  const card = { method: 'visa', reference: 'A-1' };
  const one = (await create(shop, { reference: 'A-1' })).body.id;
  const two = (await create(shop, card)).body.id;
  const three = (await create(shop, { reference: 'a-1' })).body.id;
  const four = (await create(shop, { reference: 'A-10 & more/50%+é' })).body.id;
  await shop.post(`/v1/payments/${two}/cancel`);
  const listed = (query: Record<string, string>) => list(shop, '/v1/payments', query);
  const found = async (query: Record<string, string>) => ids((await listed(query)).body.data);
  expect(await found({ reference: 'A-1' })).toEqual([two, one]);
  expect(await found({ reference: 'A-10 & more/50%+é' })).toEqual([four]);
  expect(await found({ reference: '.*' })).toEqual([]);
  expect(await found({ reference: '' })).toEqual([]);
  expect(await found({ method: 'visa' })).toEqual([two]);
  expect(await found({ status: 'cancelled' })).toEqual([two]);
  expect(await found({ status: 'awaiting_customer' })).toEqual([four, three, one]);
  expect(await found({ status: 'settled' })).toEqual([]);
  expect(await found({ status: 'cancelled', method: 'ideal', reference: 'A-1' })).toEqual([]);
  const ideal = await walkPages(listed, { limit: '1', method: 'ideal' });
  expect(ideal.flat()).toEqual([four, three, one]);
});

test('a reference that others use too finds the own payments only', async () => {
  const [shop, other] = [await service.account(), await service.account()];
  const mine = (await create(shop)).body.id;
  await create(other);
  const { body } = await list(shop, '/v1/payments', { reference: 'order-1001' });
  expect(ids(body.data)).toEqual([mine]);
});

test.each([
  ['method', 'IDEAL'],
  ['reference', 'x'.repeat(256)],
  ['reference[$ne]', '1'],
])('of payments, %s=%s is refused', async (field, value) => {
  const shop = await service.account();
  expectRefusal(await list(shop, '/v1/payments', { [field]: value }), 'invalid_request', [field]);
});

test('the list of a payment has its own refunds only', async () => {
  const shop = await service.account();
  const [first, second] = [await shop.settledPayment(), await shop.settledPayment()];
  const refund = async ({ id }: { id: string }): Promise<string> =>
    (await shop.post('/v1/refunds', { payment_id: id, amount: 1 })).body.id;
  const [own, other] = [await refund(first), await refund(second)];
  const listed = async (path: string) => ids((await list(shop, path)).body.data);
  expect(await listed(`/v1/payments/${first.id}/refunds`)).toEqual([own]);
  expect(await listed(`/v1/payments/${second.id}/refunds`)).toEqual([other]);
  expect(await listed('/v1/refunds')).toEqual([other, own]);
});
