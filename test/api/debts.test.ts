import { isDeepStrictEqual } from 'node:util';
import { createLogger } from '../../src/base/log';
import { verifyLedger } from '../../src/ledger-check/verify';
import { adjustBalance } from '../../src/service/balances/adjust';
import { fundBalance } from '../../src/service/balances/fund';
import { reverseOperation } from '../../src/service/balances/reverse';
import { collectDebts, startCollecting } from '../../worker/collect-debts';
import { operatorsAudit } from '../support/audit';
import { call, eventually, settledPayment } from '../support/http';
import { useService } from '../support/service';
import { openShop, type Shop } from './payout-setting';
import { expectRefusal } from './refusal';

const service = useService();
const CORRECTION = { operator: 'mia', reason: 'Ticket 42' };

const deps = () => {
  const { mongo, stores } = service;
  const now = () => new Date();
  return { mongo, stores, now, audit: operatorsAudit(stores), approvalLimit: 0 };
};
const log = createLogger('test', 'silent');
const collect = (livemode = false) => collectDebts({ ...deps(), log, livemode }, '');
/** Two at once, until an account has this: one leaves what is contended to its next round. */
const collectUntil = (key: string, expected: [available: number, owed: number]) =>
  eventually(`${expected} after the debt was collected`, async () => {
    await Promise.all([collect(), collect()]);
    return isDeepStrictEqual(await read(key), expected);
  });

const get = async (key: string, path: string) =>
  (await call(service.url, 'GET', path, { key })).body.data;
const simulate = ({ post }: Pick<Shop, 'post'>, id: string, body: object) =>
  post(`/v1/sandbox/payments/${id}/simulate`, body);

/** Reads available and owed of a balance account in euros. */
async function read(key: string, name = 'main') {
  const rows: Record<string, unknown>[] = await get(key, '/v1/balances');
  const row = rows.find((each) => each['balance_account'] === name && each['currency'] === 'EUR');
  return [row?.['available'], row?.['owed']];
}

/** Opens a shop that owes 1,000 of a disputed payment, beside what is on `marketing`. */
async function openDebtor(): Promise<Shop & { payment: string }> {
  const shop = await openShop(service);
  const { key, account_id } = shop;
  const { id: payment } = await settledPayment(service, key, { amount: 1_015 });
  const owner = { account_id, livemode: false, balance_account: 'main', currency: 'EUR' };
  const spent = { ...owner, amount: -1_001_000, against: 'adjustments' } as const;
  await adjustBalance(deps(), spent, CORRECTION);
  const dispute = { event: 'dispute_opened', dispute_id: 'D1', amount: 1_000, fee: 15 };
  expect((await simulate(shop, payment, dispute)).status).toBe(200);
  expect(await read(key)).toEqual([0, 1_000]);
  return { ...shop, payment };
}

async function expectWhole({ account_id, key }: Shop): Promise<void> {
  const book = `${account_id}:sandbox:EUR`;
  const { differences } = await verifyLedger(service.mongo, service.database, { book });
  expect(differences).toEqual([]);
  const rows = await get(
    key,
    '/v1/balance_transactions?balance_account=main&currency=EUR&limit=100',
  );
  const sum = rows.reduce((total: number, { net }: { net: number }) => total + net, 0);
  expect([sum]).toEqual((await read(key)).slice(0, 1));
}

test('what a merchant owes is collected from the next settled payments, once', async () => {
  const shop = await openDebtor();
  const { key } = shop;
  await settledPayment(service, key, { amount: 700 });
  // Another environment's collector leaves it.
  await collect(true);
  expect(await read(key)).toEqual([700, 1_000]);
  await collectUntil(key, [0, 300]);
  await collect();
  await settledPayment(service, key, { amount: 400 });
  await collectUntil(key, [100, 0]);
  await settledPayment(service, key, { amount: 400 });
  await collect();
  expect(await read(key)).toEqual([500, 0]);
  const rows = await get(key, '/v1/balance_transactions?type=adjustment&limit=2');
  expect(rows).toMatchObject([
    { amount: -300, fee: 0, net: -300, balance_account: 'main', source: { object: 'adjustment' } },
    { amount: -700, net: -700 },
  ]);
  await expectWhole(shop);
});

test('a funding pays the debt at once, from the balance account that it credits', async () => {
  const shop = await openDebtor();
  const { key, account_id } = shop;
  const fund = (balance_account: string, amount: number, id: string) => {
    const owner = { account_id, livemode: false, balance_account, currency: 'EUR' };
    return fundBalance(deps(), { ...owner, amount }, { id });
  };
  expect(await fund('main', 600, 'first')).toMatchObject({ available: 0 });
  expect(await fund('main', 600, 'first')).toMatchObject({ available: 0 });
  expect(await read(key)).toEqual([0, 400]);
  expect(await fund('marketing', 500, 'second')).toMatchObject({ available: 50_100 });
  expect(await read(key)).toEqual([0, 0]);
  await expectWhole(shop);
});

test('nothing is paid out while money is owed, also from other balance accounts', async () => {
  const shop = await openDebtor();
  const { key, account_id, pay } = shop;
  await settledPayment(service, key, { amount: 900 });
  const marketing = { amount: 100, metadata: { balance_account: 'marketing' } };
  for (const payout of [{ amount: 100 }, marketing]) {
    const refused = await pay(payout);
    expectRefusal(refused, 'insufficient_balance');
    expect(refused.body.error.message).toContain('You owe €10.00');
  }
  const pounds = { method: 'faster_payments', recipient_id: shop.recipients.faster_payments };
  expect((await pay({ ...pounds, currency: 'GBP', amount: 100 })).status).toBe(201);
  const limit = (to: number | null) => service.stores.accounts.setOwedLimit(account_id, 'EUR', to);
  await limit(999);
  expectRefusal(await pay(marketing), 'insufficient_balance');
  await limit(1_000);
  expect((await pay(marketing)).status).toBe(201);
  await limit(null);
  await collectUntil(key, [0, 100]);
  expectRefusal(await pay(marketing), 'insufficient_balance');
  await settledPayment(service, key, { amount: 100 });
  await collectUntil(key, [0, 0]);
  expect((await pay(marketing)).status).toBe(201);
  await expectWhole(shop);
});

test('a payout that was checked before the debt came is refused when it is reserved', async () => {
  const shop = await openDebtor();
  const { key, account_id, pay } = shop;
  const receivables = service.stores.ledger.receivables;
  // The API has read the balances before the dispute was posted.
  const spy = jest.spyOn(service.stores.ledger, 'receivables').mockResolvedValueOnce([]);
  const refused = await pay({ amount: 100, metadata: { balance_account: 'marketing' } });
  spy.mockRestore();
  expect(service.stores.ledger.receivables).toBe(receivables);
  expectRefusal(refused, 'insufficient_balance');
  expect(await read(key, 'marketing')).toEqual([50_000, 0]);
  expect(await service.stores.ledger.receivables(account_id, false)).toMatchObject([
    { owed: 1_000 },
  ]);
});

test('a dispute that is reversed after its debt was collected credits the merchant in full', async () => {
  const shop = await openDebtor();
  const { key, payment } = shop;
  await settledPayment(service, key, { amount: 1_500 });
  await collectUntil(key, [500, 0]);
  await reverseOperation(deps(), `payment_dispute_opened:${payment}:D1`, {
    ...CORRECTION,
    approved_by: 'ben',
  });
  expect(await read(key)).toEqual([1_515, 0]);
  const [row] = await get(key, '/v1/balance_transactions?limit=1');
  expect(row).toMatchObject({
    type: 'chargeback_reversal',
    ...{ amount: 1_015, source: { object: 'payment', id: payment } },
  });
  const won = await simulate(shop, payment, { event: 'dispute_won', dispute_id: 'D1' });
  expect(won.status).toBe(200);
  expect(await read(key)).toEqual([1_515, 0]);
  await expectWhole(shop);
});

test('a reversal of what is still owed leaves no debt', async () => {
  const shop = await openDebtor();
  await reverseOperation(deps(), `payment_dispute_opened:${shop.payment}:D1`, CORRECTION);
  expect(await read(shop.key)).toEqual([15, 0]);
  await expectWhole(shop);
});

test('a worker that stops leaves the other debts of its round to the next worker', async () => {
  const { mongo, stores } = deps();
  const books = ['first', 'second', 'third'].map((account) => `${account}:sandbox:EUR`);
  const collected = new Set<string>();
  let stopped: Promise<void> | undefined;
  const ledger = {
    ...stores.ledger,
    listCollectable: async () => ({ books, last: undefined }),
    collectDebt: async ({ account_id }: { account_id: string }) => {
      collected.add(account_id);
      stopped ??= stop();
      return 0;
    },
  };
  const stop = startCollecting({ mongo, stores: { ...stores, ledger }, livemode: false, log });
  await eventually('a debt that is collected', async () => collected.size > 0);
  await stopped;
  expect([...collected]).toEqual(['first']);
});
