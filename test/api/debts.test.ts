import { isDeepStrictEqual } from 'node:util';
import { createLogger } from '../../src/base/log';
import { verifyLedger } from '../../src/ledger-check/verify';
import { adjustBalance } from '../../src/service/balances/adjust';
import { fundBalance } from '../../src/service/balances/fund';
import { reverseOperation } from '../../src/service/balances/reverse';
import { collectDebts, startCollecting } from '../../worker/collect-debts';
import { operatorsAudit } from '../support/audit';
import { call, eventually } from '../support/http';
import { useService } from '../support/service';
import { openShop } from './payout-setting';
import { expectRefusal } from './refusal';

const service = useService();
const CORRECTION = { operator: 'mia', reason: 'Ticket 42' };
const MARKETING = { metadata: { balance_account: 'marketing' } };

const buildDeps = () => {
  const { mongo, stores } = service;
  const audit = operatorsAudit(stores);
  return { mongo, stores, now: () => new Date(), audit, approvalLimit: 0 };
};
const log = createLogger('test', 'silent');
const collect = (livemode = false) => collectDebts({ ...buildDeps(), log, livemode }, '');

/** Opens a shop that owes 10.00 EUR of a disputed payment, and has money on `marketing`. */
async function openDebtor() {
  const shop = await openShop(service);
  const { account_id } = shop;
  const get = async (path: string) => (await shop.get(path)).body.data;
  /** Reads available and owed of a balance account in euros. */
  const read = async (name = 'main') => {
    const rows: Record<string, unknown>[] = await get('/v1/balances');
    const row = rows.find((each) => each['balance_account'] === name && each['currency'] === 'EUR');
    return [row?.['available'], row?.['owed']];
  };
  const simulate = async (id: string, body: object) => {
    expect((await shop.post(`/v1/sandbox/payments/${id}/simulate`, body)).status).toBe(200);
  };
  const { id: payment } = await shop.settledPayment({ amount: 1_015 });
  const owner = { account_id, livemode: false, balance_account: 'main', currency: 'EUR' };
  const spent = { ...owner, amount: -1_001_000, against: 'adjustments' } as const;
  await adjustBalance(buildDeps(), spent, CORRECTION);
  await simulate(payment, { event: 'dispute_opened', dispute_id: 'D1', amount: 1_000, fee: 15 });
  expect(await read()).toEqual([0, 1_000]);
  return {
    ...shop,
    getRows: get,
    read,
    earn: (amount: number) => shop.settledPayment({ amount }),
    winDispute: () => simulate(payment, { event: 'dispute_won', dispute_id: 'D1' }),
    reverseDispute: (approval: object = {}) => {
      const entry = `payment_dispute_opened:${payment}:D1`;
      return reverseOperation(buildDeps(), entry, { ...CORRECTION, ...approval });
    },
    /** Collects twice at once until this is the balance: a contended debt waits for the next round. */
    collectUntil: (expected: [available: number, owed: number]) =>
      eventually(`${expected} after the debt was collected`, async () => {
        await Promise.all([collect(), collect()]);
        return isDeepStrictEqual(await read(), expected);
      }),
    expectConsistent: async () => {
      const book = `${account_id}:sandbox:EUR`;
      const { differences } = await verifyLedger(service.mongo, service.database, { book });
      expect(differences).toEqual([]);
      const query = 'balance_account=main&currency=EUR&limit=100';
      const rows: { net: number }[] = await get(`/v1/balance_transactions?${query}`);
      const [available] = await read();
      expect(rows.reduce((total, { net }) => total + net, 0)).toBe(available);
    },
    payment,
  };
}

test('a debt is collected once, from the next settled payments', async () => {
  const debtor = await openDebtor();
  const { read, earn, collectUntil, getRows } = debtor;
  await earn(700);
  // The collector of live leaves the sandbox alone.
  await collect(true);
  expect(await read()).toEqual([700, 1_000]);
  await collectUntil([0, 300]);
  await collect();
  await earn(400);
  await collectUntil([100, 0]);
  await earn(400);
  await collect();
  expect(await read()).toEqual([500, 0]);
  expect(await getRows('/v1/balance_transactions?type=adjustment&limit=2')).toMatchObject([
    { amount: -300, fee: 0, net: -300, balance_account: 'main', source: { object: 'adjustment' } },
    { amount: -700, net: -700 },
  ]);
  await debtor.expectConsistent();
});

test('a funding pays the debt at once, on the balance account that it credits', async () => {
  const debtor = await openDebtor();
  const fund = (balance_account: string, amount: number, id: string) => {
    const { account_id } = debtor;
    const owner = { account_id, livemode: false, balance_account, currency: 'EUR' };
    return fundBalance(buildDeps(), { ...owner, amount }, { id: `${account_id}:${id}` });
  };
  expect(await fund('main', 600, 'first')).toMatchObject({ available: 0 });
  expect(await fund('main', 600, 'first')).toMatchObject({ available: 0 });
  expect(await debtor.read()).toEqual([0, 400]);
  expect(await fund('marketing', 500, 'second')).toMatchObject({ available: 50_100 });
  expect(await debtor.read()).toEqual([0, 0]);
  await debtor.expectConsistent();
});

test('a merchant with a debt over the limit gets no payout, from any balance account', async () => {
  const debtor = await openDebtor();
  const { account_id, pay, recipients } = debtor;
  const payMarketing = () => pay({ ...MARKETING, amount: 100 });
  const setLimit = (to: number | null) =>
    service.stores.accounts.setOwedLimit(account_id, 'EUR', to);
  await debtor.earn(900);
  for (const refused of [await pay({ amount: 100 }), await payMarketing()]) {
    expectRefusal(refused, 'insufficient_balance');
    expect(refused.body.error.message).toContain('You owe €10.00');
  }
  const pounds = { method: 'faster_payments', recipient_id: recipients.faster_payments };
  expect((await pay({ ...pounds, currency: 'GBP', amount: 100 })).status).toBe(201);
  await setLimit(999);
  expectRefusal(await payMarketing(), 'insufficient_balance');
  await setLimit(1_000);
  expect((await payMarketing()).status).toBe(201);
  await setLimit(null);
  await debtor.collectUntil([0, 100]);
  expectRefusal(await payMarketing(), 'insufficient_balance');
  await debtor.earn(100);
  await debtor.collectUntil([0, 0]);
  expect((await payMarketing()).status).toBe(201);
  await debtor.expectConsistent();
});

test('a debt that comes after the check of a payout refuses it at the reservation', async () => {
  const { account_id, key, ask, read } = await openDebtor();
  const { stores } = service;
  // The API has read the balances before the dispute was posted.
  const ledger = { ...stores.ledger, receivables: async () => [] };
  await service.withApp({ stores: { ...stores, ledger } }, async (url) => {
    const body = ask({ ...MARKETING, amount: 100 });
    expectRefusal(await call(url, 'POST', '/v1/payouts', { key, body }), 'insufficient_balance');
  });
  expect(await read('marketing')).toEqual([50_000, 0]);
  expect(await stores.ledger.receivables(account_id, false)).toMatchObject([{ owed: 1_000 }]);
});

test('a dispute that is reversed after its debt was collected credits the merchant in full', async () => {
  const debtor = await openDebtor();
  await debtor.earn(1_500);
  await debtor.collectUntil([500, 0]);
  await debtor.reverseDispute({ approved_by: 'ben' });
  expect(await debtor.read()).toEqual([1_515, 0]);
  const source = { object: 'payment', id: debtor.payment };
  expect(await debtor.getRows('/v1/balance_transactions?limit=1')).toMatchObject([
    { type: 'chargeback_reversal', amount: 1_015, source },
  ]);
  await debtor.winDispute();
  expect(await debtor.read()).toEqual([1_515, 0]);
  await debtor.expectConsistent();
});

test('a dispute that is reversed before its debt is collected leaves no debt', async () => {
  const debtor = await openDebtor();
  await debtor.reverseDispute();
  expect(await debtor.read()).toEqual([15, 0]);
  await debtor.expectConsistent();
});

test('a worker that stops leaves the other debts of its round to the next worker', async () => {
  const { mongo, stores } = buildDeps();
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
