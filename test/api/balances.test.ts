import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { createLedgerStore } from '../../src/ledger/book';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { adjustBalance } from '../../src/service/balances/adjust';
import { reverseOperation } from '../../src/service/balances/reverse';
import { actOn } from '../../src/service/operators/act';
import { operatorsAudit } from '../support/audit';
import { buildRefund, fundAccount } from '../support/factories';
import { call, settledPayment } from '../support/http';
import { retryUntilDone } from '../support/insist';
import { type Account, openKey, useService } from '../support/service';
import { ASSET, openCryptoShop } from './crypto-setting';
import { walkPages } from './pages';
import { openShop, type Shop } from './payout-setting';
import { expectRefusal } from './refusal';

const service = useService();
const FEE = 25;

const get = (key: string, path: string) => call(service.url, 'GET', path, { key });
const list = (key: string, query: Record<string, string> = {}) =>
  get(key, `/v1/balance_transactions?${new URLSearchParams(query)}`);
const balances = async (key: string) => (await get(key, '/v1/balances')).body;

const Row = z.looseObject({
  id: z.string(),
  type: z.string(),
  balance_account: z.string(),
  currency: z.string().optional(),
  asset: z.string().optional(),
  amount: z.coerce.bigint(),
  fee: z.coerce.bigint(),
  net: z.coerce.bigint(),
  source: z.strictObject({ object: z.string(), id: z.string() }),
});
type Row = z.infer<typeof Row>;

/** Reads every row of a merchant, newest first. */
async function readAll(key: string): Promise<Row[]> {
  const rows: Row[] = [];
  await walkPages(
    async (query) => {
      const page = await list(key, query);
      rows.push(...z.array(Row).parse(page.body.data));
      return page;
    },
    { limit: '7' },
  );
  return rows;
}

/** Expects the rows of each balance to sum up to what it has available, and returns the rows. */
async function expectSums(key: string): Promise<Row[]> {
  const rows = await readAll(key);
  const sums = new Map<string, bigint>();
  for (const { balance_account, currency, asset, amount, fee, net } of rows) {
    expect([net, fee >= 0n]).toEqual([amount - fee, true]);
    const name = `${balance_account} ${currency ?? asset}`;
    sums.set(name, (sums.get(name) ?? 0n) + net);
  }
  const Balance = z.looseObject({
    balance_account: z.string(),
    currency: z.string().optional(),
    asset: z.string().optional(),
    available: z.coerce.bigint(),
  });
  const { data } = await balances(key);
  const stored = z
    .array(Balance)
    .parse(data)
    .map((row) => [`${row.balance_account} ${row.currency ?? row.asset}`, row.available] as const);
  expect(new Map(stored)).toEqual(sums);
  return rows;
}

async function openFeeShop(): Promise<Shop> {
  const shop = await openShop(service);
  await service.stores.accounts.setPayoutFee(shop.account_id, 'sepa_instant', FEE);
  return shop;
}

const simulate = ({ post }: Account, path: string, event: string) =>
  post(`/v1/sandbox/${path}/simulate`, { event });

const operators = () => {
  const { mongo, stores } = service;
  const now = () => new Date();
  return { mongo, stores, now, audit: operatorsAudit(stores) };
};
const CORRECTION = { operator: 'mia', reason: 'Ticket 42' };

async function chargeBack(shop: Account, payment_id: string) {
  await simulate(shop, `payments/${payment_id}`, 'clawed_back');
  const { stores, temporal, queues } = service;
  const deps = { stores, temporal, lifecycleQueue: queues.lifecycle, timeoutMs: 180_000 };
  await actOn(deps, 'payment', payment_id, { what: 'claw_back', ...CORRECTION });
}

/** Lists the changes of one source: type, amount and fee, oldest first. */
function listChanges(rows: readonly Row[], id: string) {
  return rows
    .filter(({ source }) => source.id === id)
    .map(({ type, amount, fee, source }) => [type, Number(amount), Number(fee), source.object])
    .reverse();
}

test('each change of the available balance is a balance transaction, and they sum up to it', async () => {
  const shop = await openFeeShop();
  const { key, account_id } = shop;
  const { id: payment } = await settledPayment(service, key);
  const refund = async (amount: number, status: 'settled' | 'failed') =>
    (await buildRefund(shop, { payment_id: payment, amount, status })).id;
  const settled = await refund(100, 'settled');
  const failed = await refund(200, 'failed');
  const { id: completed } = (await shop.paid()).body;
  await shop.simulate(completed, { event: 'completed' });
  const { id: unsent } = (await shop.paid({ amount: 66_621 }, 'failed')).body;
  const { id: refused } = (await shop.paid({ metadata: { balance_account: 'marketing' } })).body;
  await shop.simulate(refused, { event: 'failed' });
  const { id: returned } = (await shop.paid({ amount: 3_000 })).body;
  await shop.simulate(returned, { event: 'returned' });
  const { id: disputed } = await settledPayment(service, key, { amount: 4_000 });
  await chargeBack(shop, disputed);
  const owner = { account_id, livemode: false, balance_account: 'main', currency: 'EUR' };
  const adjustment = { ...owner, amount: -700, against: 'adjustments' } as const;
  await adjustBalance(operators(), adjustment, CORRECTION, 'adjust_a');
  const rows = await expectSums(key);

  expect(listChanges(rows, payment)).toEqual([['payment', 1_050, 0, 'payment']]);
  expect(listChanges(rows, settled)).toEqual([['refund', -100, 0, 'refund']]);
  expect(listChanges(rows, failed)).toEqual([
    ['refund', -200, 0, 'refund'],
    ['refund_failure', 200, 0, 'refund'],
  ]);
  expect(listChanges(rows, completed)).toEqual([['payout', -1_000, FEE, 'payout']]);
  expect(listChanges(rows, unsent)).toEqual([
    ['payout', -66_621, FEE, 'payout'],
    ['payout_failure', 66_621 + FEE, 0, 'payout'],
  ]);
  expect(listChanges(rows, refused)).toEqual([
    ['payout', -1_000, FEE, 'payout'],
    ['payout_failure', 1_000 + FEE, 0, 'payout'],
  ]);
  expect(listChanges(rows, returned)).toEqual([
    ['payout', -3_000, FEE, 'payout'],
    ['payout_return', 3_000, 0, 'payout'],
  ]);
  expect(listChanges(rows, disputed)).toEqual([
    ['payment', 4_000, 0, 'payment'],
    ['chargeback', -4_000, 0, 'payment'],
  ]);
  expect(listChanges(rows, 'adjust_a')).toEqual([['adjustment', -700, 0, 'adjustment']]);

  await reverseOperation(operators(), `payment_clawed_back:${disputed}`, CORRECTION);
  await reverseOperation(operators(), 'adjusted:adjust_a', CORRECTION);
  const after = await expectSums(key);
  expect(listChanges(after, disputed).at(-1)).toEqual(['chargeback_reversal', 4_000, 0, 'payment']);
  expect(listChanges(after, 'adjust_a').at(-1)).toEqual(['adjustment', 700, 0, 'adjustment']);
  expect(after.filter(({ type }) => type === 'funding')).toHaveLength(6);
  expect(new Set(after.map(({ id }) => id)).size).toBe(after.length);
});

test('an asset has a balance of its own, whose amounts are texts', async () => {
  const account = await openCryptoShop(service);
  const { key, post } = account;
  await account.registerWallet();
  const { id: payment, amount_due } = await account.pay();
  await simulate(account, `crypto/payments/${payment}`, 'received');
  const least = 10n ** 15n;
  const settle = async (amount: string, event: 'completed' | 'failed') => {
    const { id } = (await post('/v1/crypto/settlements', { ...ASSET, amount })).body;
    await service.becomes('crypto_settlements', id, { status: 'sent' });
    await simulate(account, `crypto/settlements/${id}`, event);
    return id;
  };
  const completed = await settle(String(least), 'completed');
  const failed = await settle(String(2n * least), 'failed');
  const rows = await expectSums(key);
  expect(listChanges(rows, payment)).toEqual([
    ['crypto_payment', Number(amount_due), 0, 'crypto_payment'],
  ]);
  expect(listChanges(rows, completed)).toEqual([
    ['crypto_settlement', -Number(least), 0, 'crypto_settlement'],
  ]);
  expect(listChanges(rows, failed)).toEqual([
    ['crypto_settlement', -2 * Number(least), 0, 'crypto_settlement'],
    ['crypto_settlement_failure', 2 * Number(least), 0, 'crypto_settlement'],
  ]);
  const available = String(BigInt(amount_due) - least);
  expect(await balances(key)).toEqual({
    object: 'list',
    data: [
      {
        object: 'balance',
        balance_account: 'main',
        ...ASSET,
        ...{ available, reserved: '0', pending: '0', owed: '0' },
      },
    ],
  });
  const { data } = (await list(key, { asset: 'ETH', type: 'crypto_payment' })).body;
  expect(data).toEqual([
    {
      id: expect.stringMatching(/^txn_[0-9a-f-]{36}$/),
      object: 'balance_transaction',
      type: 'crypto_payment',
      balance_account: 'main',
      ...ASSET,
      ...{ amount: amount_due, fee: '0', net: amount_due },
      available_on: data[0].created_at,
      source: { object: 'crypto_payment', id: payment },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
    },
  ]);
  expect((await list(key, { asset: 'BTC' })).body.data).toEqual([]);
  expect((await list(key, { asset: 'ETH', currency: 'EUR' })).body.data).toEqual([]);
});

test('a debt after a chargeback is shown in the balance, and is no balance transaction', async () => {
  const account = await service.account();
  const { account_id, key } = account;
  const { id } = await settledPayment(service, key);
  const spent = { account_id, livemode: false, balance_account: 'main', currency: 'EUR' };
  const adjustment = { ...spent, amount: -1_000, against: 'adjustments' } as const;
  await adjustBalance(operators(), adjustment, CORRECTION);
  await chargeBack(account, id);
  const rows = await expectSums(key);
  expect(listChanges(rows, id).at(-1)).toEqual(['chargeback', -50, 0, 'payment']);
  const balance = { object: 'balance', balance_account: 'main', currency: 'EUR' };
  expect((await balances(key)).data).toEqual([
    { ...balance, available: 0, reserved: 0, pending: 0, owed: 1_000 },
  ]);
});

test('a balance shows what a payout reserves', async () => {
  const shop = await openFeeShop();
  await shop.pay({ amount: 66_624 });
  const { data } = await balances(shop.key);
  expect(data.map((row: Record<string, unknown>) => Object.values(row))).toEqual([
    ['balance', 'main', 'EUR', 1_000_000 - 66_624 - FEE, 66_624 + FEE, 0, 0],
    ['balance', 'main', 'GBP', 1_000_000, 0, 0, 0],
    ['balance', 'main', 'JPY', 1_000_000, 0, 0, 0],
    ['balance', 'marketing', 'EUR', 50_000, 0, 0, 0],
    ['balance', 'marketing', 'GBP', 50_000, 0, 0, 0],
    ['balance', 'marketing', 'JPY', 50_000, 0, 0, 0],
  ]);
});

test('balance transactions are filtered by account, currency and type, also page by page', async () => {
  const shop = await openShop(service);
  await settledPayment(service, shop.key);
  const summary = async (query: Record<string, string>) =>
    (await list(shop.key, query)).body.data.map((row: Row) => [
      row.type,
      row.balance_account,
      row.currency,
    ]);
  expect(await summary({ balance_account: 'marketing', currency: 'GBP' })).toEqual([
    ['funding', 'marketing', 'GBP'],
  ]);
  expect(await summary({ type: 'payment' })).toEqual([['payment', 'main', 'EUR']]);
  expect(await summary({ currency: 'EUR' })).toEqual([
    ['payment', 'main', 'EUR'],
    ['funding', 'marketing', 'EUR'],
    ['funding', 'main', 'EUR'],
  ]);
  expect(await summary({ currency: 'USD' })).toEqual([]);
  expect(await summary({ type: 'refund', balance_account: 'main' })).toEqual([]);
  const pages = await walkPages((query) => list(shop.key, query), { type: 'funding', limit: '4' });
  expect(pages.map((page) => page.length)).toEqual([4, 2]);
});

test('balance transactions of one millisecond are listed once each, newest first', async () => {
  const { account_id, key } = await service.account();
  const written = new Date('2026-01-02T03:04:05.678Z');
  const { mongo, database } = service;
  const ledger = createLedgerStore(mongo.db(database), () => written);
  const about = { kind: 'funded', account_id, livemode: false, currency: 'EUR' } as const;
  const at = written.toISOString();
  const post = (amount: number) => {
    const legs = ENTRY_LINES.funded('main', amount);
    const entry = { ...about, at, resource_id: randomUUID(), legs };
    return retryUntilDone(() => inTransaction(mongo, (session) => ledger.post(entry, session)));
  };
  for (let amount = 1; amount <= 150; amount += 1) await post(amount);
  const pages = await walkPages((query) => list(key, query), { limit: '37' });
  expect(pages.map((page) => page.length)).toEqual([37, 37, 37, 37, 2]);
  expect(new Set(pages.flat()).size).toBe(150);
  expect((await list(key, { created_before: at })).body.data).toEqual([]);
  expect((await list(key, { limit: '1' })).body.data[0]).toMatchObject({ created_at: at });
});

test('balances of another account or environment are never shown', async () => {
  const { account_id, key } = await service.account();
  const other = await service.account();
  const live = await openKey(service.stores, account_id, true);
  await fundAccount(service, { account_id }, { amount: 100 });
  await fundAccount(service, { account_id }, { amount: 200, livemode: true });
  const amounts = async (of: string) =>
    (await list(of)).body.data.map(({ amount }: { amount: number }) => amount);
  const available = async (of: string) =>
    (await balances(of)).data.map((row: { available: number }) => row.available);
  for (const [of, expected] of [
    [key, [100]],
    [live, [200]],
    [other.key, []],
  ] as const) {
    expect([await amounts(of), await available(of)]).toEqual([expected, expected]);
  }
  expectRefusal(await list(other.key, { balance_account: 'marketing' }), 'invalid_request', [
    'balance_account',
  ]);
});

test.each([
  ['balance_transactions?type=paid', ['type']],
  ['balance_transactions?currency=XXZ', ['currency']],
  ['balance_transactions?currency=eur', ['currency']],
  ['balance_transactions?asset=DOGE', ['asset']],
  ['balance_transactions?balance_account=', ['balance_account']],
  ['balance_transactions?balance_account=a.b', ['balance_account']],
  ['balance_transactions?balance_account=none', ['balance_account']],
  ['balance_transactions?limit=0', ['limit']],
  ['balance_transactions?network=ethereum&status=settled', ['network', 'status']],
  ['balance_transactions?created_before=yesterday', ['created_before']],
  ['balances?limit=1', ['limit']],
])('%s is refused, naming the parameters', async (path, fields) => {
  const answer = await (await service.account()).get(`/v1/${path}`);
  const isCursor = path.includes('created_before');
  expectRefusal(answer, isCursor ? 'invalid_cursor' : 'invalid_request', fields);
});
