import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { createLogger } from '../../src/base/log';
import { buildPosition, TIES } from '../../src/domain/cursor';
import { ENDPOINTS } from '../../src/domain/wire';
import { verifyLedger } from '../../src/ledger-check/verify';
import { reverseOperation } from '../../src/service/money/balances/act';
import { adjustBalance } from '../../src/service/money/balances/adjust';
import { fundBalance } from '../../src/service/money/balances/fund';
import { actOn } from '../../src/service/operators/act';
import { collectDebts, startCollecting } from '../../worker/rounds';
import { operatorsAudit } from '../support/audit';
import { eventually } from '../support/eventually';
import { buildAccount, buildPayment, buildRefund, fundAccount } from '../support/factories';
import { type Answer, type Client, call } from '../support/http';
import { useService } from '../support/service';
import { storeResources } from '../support/stored-resources';
import { ACT_MS_MAX, ASSET, openCryptoShop } from './crypto-setting';
import { ids, walkPages } from './pages';
import { openShop } from './payout-setting';
import { expectRefusal } from './refusal';

const service = useService();

/** Lists with pages, each with the schemas of its parameters. */
const LISTS = ENDPOINTS.flatMap(({ path, query }) => {
  const { properties = {} } = query ? z.toJSONSchema(query, { io: 'input' }) : {};
  const isPaged = 'created_before' in properties && !path.includes('{');
  const statuses: unknown[] = Object(properties['status']).enum ?? [];
  return isPaged ? [{ path, names: Object.keys(properties), statuses: statuses.map(String) }] : [];
});
/** Parameters that may have any text. */
const FREE = ['reference', 'resource_id', 'payment_id', 'after'];
/** Moment in which the rows of a test are created. */
const OLD = '2026-01-02T03:04:05.678Z';
/** Rows of one millisecond are inserted in another order than that of their positions. */
const STEP = 618_033;
let tie = 0;

test('the lists are those of docs/api.md', () => {
  expect(LISTS.map(({ path }) => path.replace('/v1/', '')).toSorted()).toEqual([
    ...['balance_transactions', 'crypto/payments', 'crypto/settlements', 'disputes', 'events'],
    ...['payments', 'payouts', 'refunds', 'requests', 'webhook-endpoints'],
  ]);
  expect(LISTS.filter(({ statuses }) => statuses.length > 0)).toHaveLength(6);
});

test.each(LISTS)('the list $path refuses wrong parameters, and names each', async (list) => {
  const { path, names } = list;
  const merchant = await buildAccount(service, { crypto: true });
  const wrong = 'no such value';
  const chosen = names.filter((name) => !FREE.includes(name) && name !== 'created_before');
  const limits = ['0', '101', '1.0', '1e1', '', '٣', '99999999999999999999', '1&limit=1'];
  for (const [parameters, ...fields] of [
    ...limits.map((limit) => [`limit=${limit}`, 'limit'] as const),
    ...chosen.map((name) => [`${name}=${wrong}&page=2`, name, 'page'] as const),
    ...chosen.map((name) => [`${name}[$ne]=1`, `${name}[$ne]`] as const),
    ['limit=5&limit=5', 'limit'],
    ['__proto__=1&constructor=2', '__proto__', 'constructor'],
  ] as const) {
    expectRefusal(await merchant.get(`${path}?${parameters}`), 'invalid_request', fields);
  }
  const answer = await merchant.get(`${path}?created_before=now`);
  expectRefusal(answer, 'invalid_cursor', ['created_before']);
});

/** Opens an account without rows, and a way to insert some that are like a stored one. */
async function openList(path: string) {
  const name = path.slice('/v1/'.length).replace('/', '_');
  const collection = service.collection<{ _id: string }>(name);
  const [like, owner] = [await service.account(), await buildAccount(service, { crypto: true })];
  await storeResources(service, { ...like, livemode: false });
  const row = await collection.findOne({ account_id: like.account_id });
  const { account_id } = owner;
  /** Inserts rows of one millisecond; returns their ids. */
  const insert = async (count: number, created_at = OLD, changes: object = {}) => {
    const documents = Array.from({ length: count }, () => {
      tie = (tie + STEP) % TIES;
      const [id, token_hash, address] = [randomUUID(), randomUUID(), randomUUID()];
      const _id = name === 'disputes' ? `dp_${id}` : id;
      const unique = { _id, token_hash, address, name: _id };
      const position = buildPosition(Date.parse(created_at), tie);
      return { ...row, account_id, created_at, position, ...unique, ...changes };
    });
    await collection.insertMany(documents);
    return documents.map(({ _id }) => _id);
  };
  const get = (query: Record<string, string> = {}, as: Client = owner) =>
    as.get(`${path}?${new URLSearchParams(query)}`);
  return { ...owner, insert, list: get };
}

describe.each(LISTS.filter(({ statuses }) => statuses.length > 0))('the list $path', ({ path }) => {
  test('is newest first, each row as a read shows it, and never one of another owner', async () => {
    const { insert, list, ...owner } = await openList(path);
    const page = { object: 'list', has_more: false, next_cursor: null };
    expect((await list()).body).toEqual({ ...page, data: [] });
    const inserted: string[] = [];
    for (const at of ['2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.001Z', OLD]) {
      inserted.push(...(await insert(1, at)));
    }
    const live = await insert(3, OLD, { livemode: true });
    const { status, body } = await list();
    const reads = inserted.reverse().map((id) => owner.get(`${path}/${id}`));
    const data = (await Promise.all(reads)).map((each) => each.body);
    expect([status, body]).toEqual([200, { ...page, data }]);
    const stranger = await buildAccount(service, { crypto: true });
    expect((await list({}, stranger)).body.data).toEqual([]);
    const shown = (await list({}, await service.withKey(owner, true))).body.data;
    expect(ids(shown).toSorted()).toEqual(live.toSorted());
    // A refund does not say its environment.
    for (const each of shown) expect(each.livemode ?? true).toBe(true);
  });

  test('gives the rows of one millisecond once each, also while new ones are created', async () => {
    const { insert, list } = await openList(path);
    const inserted = await insert(80);
    expect((await list()).body.data).toHaveLength(25);
    const all = (await list({ limit: '80' })).body;
    expect([all.data.length, all.has_more, all.next_cursor]).toEqual([80, false, null]);
    expect((await list({ limit: '79' })).body.has_more).toBe(true);
    const readPage = async (query: Record<string, string>) => {
      const page = await list(query);
      await insert(1, new Date().toISOString());
      return page;
    };
    const pages = await walkPages(readPage, { limit: '17' });
    expect(pages.slice(0, -1).every((page) => page.length === 17)).toBe(true);
    expect(pages.flat().toSorted()).toEqual(inserted.toSorted());
    // The time of the only row of its millisecond, and a cursor that lost the digits of several.
    const [before, after] = ['2026-01-02T00:00:00.001Z', '2026-01-02T00:00:00.002Z'];
    const [earlier] = [await insert(1, before), await insert(1, after)];
    const own = (await list({ created_before: after, limit: '1' })).body;
    expect(ids(own.data)).toEqual(earlier);
    const cut = await list({ created_before: OLD });
    expectRefusal(cut, 'invalid_cursor', ['created_before']);
  });
});

test.each(['/v1/events', '/v1/webhook-endpoints'])(
  'the list %s is newest first, goes on at its cursor, refuses one that has lost digits, and takes a time of your own',
  async (path) => {
    const shop = await service.account();
    for (const url of ['http://localhost:1/', 'http://localhost:2/']) {
      await shop.post('/v1/webhook-endpoints', { url });
      await buildPayment(shop, { status: 'settled' });
    }
    const read = async (query: Record<string, string>) =>
      (await shop.get(`${path}?${new URLSearchParams({ ...query, limit: '1' })}`)).body;
    const { data, next_cursor: cursor } = await read({});
    expect(cursor).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
    const cut = await read({ created_before: `${cursor.slice(0, -4)}Z` });
    // Its last digits may be zeros: nothing is lost then.
    if (!cursor.endsWith('000Z')) {
      const message = expect.stringContaining('send a next_cursor as the text it is');
      expect(cut.error).toMatchObject({ code: 'invalid_cursor', message });
    }
    const [next] = (await read({ created_before: cursor })).data;
    expect([undefined, data[0].id]).not.toContain(next?.id);
    const readTime = (row: Row) => row.created ?? row.created_at;
    expect(readTime(data[0]) >= readTime(next)).toBe(true);
    const soon = new Date(Date.now() + 60_000).toISOString();
    for (const [created_before, rows] of [
      [soon, data],
      [`${soon.slice(0, 19)}+00:00`, data],
      [`${cursor.slice(0, 4)}-01-01T00:00:00.000000000Z`, []],
    ] as const) {
      expect(ids((await read({ created_before })).data)).toEqual(ids(rows));
    }
  },
);

test('payments are filtered by status, method and reference, and refunds by their payment, for its owner', async () => {
  const shop = await service.account();
  const find = async (path: string, query: Record<string, string>) =>
    ids((await shop.get(`/v1/${path}?${new URLSearchParams(query)}`)).body.data);
  const { id: one } = await buildPayment(shop, { reference: 'A-1' });
  const { id: two } = await buildPayment(shop, {
    method: 'visa',
    reference: 'A-1',
    status: 'settled',
  });
  const { id: three } = await buildPayment(shop, { reference: 'A-10 & more/50%+é' });
  const [first, second] = [
    await buildRefund(shop, { payment_id: two, amount: 1 }),
    await buildRefund(shop, { payment_id: two, amount: 2, status: 'settled' }),
  ];
  await buildRefund(shop, { amount: 3 });
  const refunds = `payments/${two}/refunds`;
  for (const [path, query, found] of [
    ['payments', { reference: 'A-1' }, [two, one]],
    ['payments', { reference: 'A-10 & more/50%+é' }, [three]],
    ['payments', { reference: '.*' }, []],
    ['payments', { reference: '' }, []],
    ['payments', { method: 'visa' }, [two]],
    ['payments', { status: 'awaiting_customer' }, [three, one]],
    ['payments', { status: 'settled', method: 'ideal', reference: 'A-1' }, []],
    [refunds, {}, [second.id, first.id]],
    [refunds, { limit: '1' }, [second.id]],
    [refunds, { status: 'processing' }, [first.id]],
  ] as const) {
    expect([query, await find(path, query)]).toEqual([query, found]);
  }
  const long = await shop.get(`/v1/payments?reference=${'x'.repeat(256)}`);
  expectRefusal(long, 'invalid_request', ['reference']);
  expectRefusal(await shop.get(`/v1/${refunds}?method=ideal`), 'invalid_request', ['method']);
});

const FEE = 25;
/** Amount that the sandbox bank takes without saying that it is sent. */
const NOT_SENT = 66_624;
const CORRECTION = { operator: 'mia', reason: 'Ticket 42' };

type Row = Answer['body'];

const list = (client: Client, query: Record<string, string> = {}) =>
  client.get(`/v1/balance_transactions?${new URLSearchParams(query)}`);
const listRows = async (client: Client, query: Record<string, string> = {}): Promise<Row[]> =>
  (await list(client, query)).body.data;
const listBalances = async (client: Client): Promise<Row[]> =>
  (await client.get('/v1/balances')).body.data;

/** Expects the rows of each balance to sum up to what it has available; lists the rows. */
async function expectSums(client: Client): Promise<Row[]> {
  const rows: Row[] = [];
  const readPage = async (query: Record<string, string>) => {
    const page = await list(client, query);
    rows.push(...page.body.data);
    return page;
  };
  await walkPages(readPage, { limit: '7' });
  const sums: Record<string, bigint> = {};
  const buildName = (row: Row) => `${row.balance_account} ${row.currency ?? row.asset}`;
  for (const row of rows) {
    const net = BigInt(row.net);
    expect([net, BigInt(row.fee) >= 0n]).toEqual([BigInt(row.amount) - BigInt(row.fee), true]);
    sums[buildName(row)] = (sums[buildName(row)] ?? 0n) + net;
  }
  const balances = await listBalances(client);
  const stored = balances.map((row) => [buildName(row), BigInt(row.available)] as const);
  expect(Object.fromEntries(stored)).toEqual(sums);
  return rows;
}

/** Lists the changes of one source: type, amount and fee, oldest first. */
function listChanges(rows: readonly Row[], id: string) {
  return rows
    .filter(({ source }) => source.id === id)
    .map(({ type, amount, fee, source }) => [type, Number(amount), Number(fee), source.object])
    .reverse();
}

const simulate = ({ post }: Client, path: string, body: object) =>
  post(`/v1/sandbox/${path}/simulate`, body);

/** Dependencies of operators' acts on balances. */
const buildDeps = () => {
  const { mongo, stores } = service;
  const audit = operatorsAudit(stores);
  return { mongo, stores, now: () => new Date(), audit, approvalLimit: 0 };
};
const buildOwner = ({ account_id }: { account_id: string }, balance_account = 'main') => ({
  ...{ account_id, livemode: false, currency: 'EUR' },
  balance_account,
});
/** Takes funds from the main balance. */
const adjust = (account: { account_id: string }, amount: number, id?: string) => {
  const adjustment = { ...buildOwner(account), amount, against: 'adjustments' } as const;
  return adjustBalance(buildDeps(), adjustment, CORRECTION, id);
};

describe('balance transactions', () => {
  test('are each change of the available balance, sum up to it, and are filtered, for their owner', async () => {
    const shop = await openShop(service);
    await service.stores.accounts.setPayoutFee(shop.account_id, 'sepa_instant', FEE);
    await fundAccount(service, shop, { amount: 200, livemode: true });
    await shop.pay({ amount: NOT_SENT });
    const reserved = NOT_SENT + FEE;
    expect((await listBalances(shop))[0]).toEqual({
      ...{ object: 'balance', balance_account: 'main', currency: 'EUR' },
      ...{ available: 1_000_000 - reserved, reserved, pending: 0, owed: 0 },
      proved_until: null,
    });
    const { id: payment } = await shop.settledPayment();
    const refund = async (amount: number, status: 'settled' | 'failed') =>
      (await buildRefund(shop, { payment_id: payment, amount, status })).id;
    const payout = async (event: string, changes: object = {}) => {
      const { id } = (await shop.paid(changes)).body;
      await shop.simulate(id, { event });
      return id;
    };
    const [settled, failed, completed, refused, returned, unsent, { id: disputed }] =
      await Promise.all([
        ...([refund(100, 'settled'), refund(200, 'failed'), payout('completed')] as const),
        payout('failed', { metadata: { balance_account: 'marketing' } }),
        payout('returned', { amount: 3_000 }),
        shop.paid({ amount: 66_621 }, 'failed').then(({ body }) => body.id),
        shop.settledPayment({ amount: 4_000 }),
      ]);
    await simulate(shop, `payments/${disputed}`, { event: 'clawed_back' });
    const { stores, temporal, queues } = service;
    const acting = { stores, temporal, lifecycleQueue: queues.lifecycle, timeoutMs: ACT_MS_MAX };
    await actOn(acting, 'payment', disputed, { what: 'claw_back', ...CORRECTION });
    await adjust(shop, -700, 'adjust_a');
    await reverseOperation(buildDeps(), `payment_clawed_back:${disputed}`, CORRECTION);
    await reverseOperation(buildDeps(), 'adjusted:adjust_a', CORRECTION);
    const rows = await expectSums(shop);
    const changes: [id: string, ...changes: [type: string, amount: number, fee: number][]][] = [
      [payment, ['payment', 1_050, 0]],
      [settled, ['refund', -100, 0]],
      [failed, ['refund', -200, 0], ['refund_failure', 200, 0]],
      [completed, ['payout', -1_000, FEE]],
      [unsent, ['payout', -66_621, FEE], ['payout_failure', 66_621 + FEE, 0]],
      [refused, ['payout', -1_000, FEE], ['payout_failure', 1_000 + FEE, 0]],
      [returned, ['payout', -3_000, FEE], ['payout_return', 3_000, 0]],
      [
        disputed,
        ['payment', 4_000, 0],
        ['chargeback', -4_000, 0],
        ['chargeback_reversal', 4_000, 0],
      ],
      ['adjust_a', ['adjustment', -700, 0], ['adjustment', 700, 0]],
    ];
    for (const [id, ...expected] of changes) {
      const kind = expected[0]?.[0];
      expect(listChanges(rows, id)).toEqual(expected.map((change) => [...change, kind]));
    }
    expect(rows.filter(({ type }) => type === 'funding')).toHaveLength(6);
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    const [other, live] = [await service.account(), await service.withKey(shop, true)];
    expect(await listBalances(live)).toMatchObject([{ available: 200 }]);
    expect(await listBalances(other)).toEqual([]);
    for (const [client, query, expected] of [
      [shop, { balance_account: 'marketing', currency: 'GBP' }, ['funding marketing GBP']],
      [shop, { type: 'chargeback' }, ['chargeback main EUR']],
      [shop, { currency: 'USD' }, []],
      [live, {}, ['funding main EUR']],
      [other, {}, []],
    ] as const) {
      const found = await listRows(client, query);
      const seen = found.map((row) => `${row.type} ${row.balance_account} ${row.currency}`);
      expect([query, seen]).toEqual([query, expected]);
    }
    const foreign = await list(other, { balance_account: 'marketing' });
    expectRefusal(foreign, 'invalid_request', ['balance_account']);
  });

  // Changes by settlements: test/api/crypto.test.ts
  test('of an asset have amounts that are texts, as has its balance', async () => {
    const account = await openCryptoShop(service);
    const { id: payment, amount_due } = await account.pay();
    await simulate(account, `crypto/payments/${payment}`, { event: 'received' });
    await service.becomes('crypto_payments', payment, { status: 'received' });
    const [received, ...rest] = await expectSums(account);
    expect([received, rest]).toEqual([
      {
        id: expect.stringMatching(/^txn_[0-9a-f-]{36}$/),
        ...{ object: 'balance_transaction', type: 'crypto_payment', balance_account: 'main' },
        ...{ ...ASSET, amount: amount_due, fee: '0', net: amount_due },
        source: { object: 'crypto_payment', id: payment },
        available_on: received.created_at,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
      },
      [],
    ]);
    const others = { reserved: '0', pending: '0', owed: '0', proved_until: null };
    expect(await listBalances(account)).toEqual([
      { object: 'balance', balance_account: 'main', ...ASSET, available: amount_due, ...others },
    ]);
    for (const [query, count] of [
      [{ asset: 'ETH' }, 1],
      [{ asset: 'BTC' }, 0],
      [{ asset: 'ETH', currency: 'EUR' }, 0],
    ] as const) {
      expect([query, await listRows(account, query)]).toEqual([query, Array(count).fill(received)]);
    }
  });
});

describe('a debt', () => {
  const log = createLogger('test', 'silent');
  const collect = (livemode = false) => collectDebts({ ...buildDeps(), log, livemode }, '');
  const fromMarketing = { metadata: { balance_account: 'marketing' } };

  /** Opens a shop that owes 10.00 EUR of a disputed payment, and has money on `marketing`. */
  async function openDebtor() {
    const shop = await openShop(service);
    /** Reads available and owed of a balance account in EUR. */
    const read = async (name = 'main') => {
      const rows = await listBalances(shop);
      const row = rows.find((each) => each.balance_account === name && each.currency === 'EUR');
      return [row?.available, row?.owed];
    };
    const { id: payment } = await shop.settledPayment({ amount: 1_015 });
    await adjust(shop, -1_001_000);
    await service.stores.accounts.setAcquirerFee(shop.account_id, 'merchant');
    const dispute = { event: 'dispute_opened', dispute_id: 'D1', amount: 1_000, fee: 15 };
    await simulate(shop, `payments/${payment}`, dispute);
    expect(await read()).toEqual([0, 1_000]);
    return {
      ...shop,
      payment,
      read,
      earn: (amount: number) => shop.settledPayment({ amount }),
      /** Collects twice at once until this is the balance: a contended debt waits for the next round. */
      collectUntil: (expected: [available: number, owed: number]) =>
        eventually(`${expected} after the debt was collected`, async () => {
          await Promise.all([collect(), collect()]);
          return isDeepStrictEqual(await read(), expected);
        }),
      expectConsistent: async () => {
        const book = `${shop.account_id}:sandbox:EUR`;
        const { differences } = await verifyLedger(service.mongo, service.database, { book });
        expect(differences).toEqual([]);
        await expectSums(shop);
      },
    };
  }

  test('is collected once, and credited in full when its dispute is reversed', async () => {
    const debtor = await openDebtor();
    const { read, earn, collectUntil, payment } = debtor;
    await earn(700);
    // The collector of live leaves the sandbox alone.
    await collect(true);
    expect(await read()).toEqual([700, 1_000]);
    await collectUntil([0, 300]);
    await earn(800);
    await collectUntil([500, 0]);
    await collect();
    const source = { object: 'adjustment' };
    expect(await listRows(debtor, { type: 'adjustment', limit: '2' })).toMatchObject([
      { amount: -300, fee: 0, net: -300, balance_account: 'main', source },
      { amount: -700, net: -700 },
    ]);
    const approved = { ...CORRECTION, approved_by: 'ben' };
    await reverseOperation(buildDeps(), `payment_dispute_opened:${payment}:D1`, approved);
    expect(await listRows(debtor, { limit: '1' })).toMatchObject([
      { type: 'chargeback_reversal', amount: 1_015, source: { id: payment } },
    ]);
    // The fee is no part of what the bank moves.
    const movements = await service.stores.movements.forResource(payment);
    const disputed = movements.filter(({ dispute }) => dispute !== undefined);
    expect(disputed.map(({ direction, amount }) => [direction, amount])).toEqual([
      ['out', 1_000],
      ['in', 1_000],
    ]);
    await simulate(debtor, `payments/${payment}`, { event: 'dispute_won', dispute_id: 'D1' });
    expect(await read()).toEqual([1_515, 0]);
    await debtor.expectConsistent();
  });

  test('over the limit stops payouts in its currency from any balance account, until a funding pays it', async () => {
    const debtor = await openDebtor();
    const { account_id, pay, recipients, read } = debtor;
    const payMarketing = () => pay({ ...fromMarketing, amount: 100 });
    const setLimit = (to: number | null) =>
      service.stores.accounts.setLimit(account_id, 'owed_limits.EUR', to);
    const fund = (balance_account: string, amount: number, id: string) => {
      const funding = { ...buildOwner(debtor, balance_account), amount };
      return fundBalance(buildDeps(), funding, { id: `${account_id}:${id}` });
    };
    // It is paid at once, on the balance account that the funding credits.
    for (const _ of ['first', 'again']) {
      expect(await fund('main', 600, 'first')).toMatchObject({ available: 0 });
      expect(await read()).toEqual([0, 400]);
    }
    await debtor.earn(900);
    for (const refused of [await pay({ amount: 100 }), await payMarketing()]) {
      expectRefusal(refused, 'insufficient_balance');
      expect(refused.body.error.message).toContain('You owe €4.00');
    }
    const pounds = { method: 'faster_payments', recipient_id: recipients.faster_payments };
    expect((await pay({ ...pounds, currency: 'GBP', amount: 100 })).status).toBe(201);
    await setLimit(399);
    expectRefusal(await payMarketing(), 'insufficient_balance');
    await setLimit(400);
    expect((await payMarketing()).status).toBe(201);
    await setLimit(null);
    expectRefusal(await payMarketing(), 'insufficient_balance');
    expect(await fund('marketing', 500, 'second')).toMatchObject({ available: 50_000 });
    expect(await read()).toEqual([900, 0]);
    expect((await payMarketing()).status).toBe(201);
    await debtor.expectConsistent();
  });

  test('in a currency without money is a row of its own', async () => {
    const shop = await openShop(service);
    const debit = { ...buildOwner(shop, 'marketing'), currency: 'CHF', amount: -700 };
    const adjustment = { ...debit, against: 'adjustments', owed: true } as const;
    await adjustBalance(buildDeps(), adjustment, CORRECTION);
    const rows = await listBalances(shop);
    const nothing = { available: 0, reserved: 0, pending: 0, proved_until: null };
    expect(rows.filter(({ currency }) => currency === 'CHF')).toEqual([
      { object: 'balance', balance_account: 'main', currency: 'CHF', ...nothing, owed: 700 },
    ]);
  });

  test('is on `main`, also where that never held money of its currency', async () => {
    const shop = await openShop(service);
    const owner = { ...buildOwner(shop, 'marketing'), currency: 'CHF' };
    await fundBalance(buildDeps(), { ...owner, amount: 300 });
    const debit = { ...owner, amount: -1_000, against: 'adjustments', owed: true } as const;
    await adjustBalance(buildDeps(), debit, CORRECTION);
    const rows: { currency: string }[] = await listBalances(shop);
    expect(rows.filter(({ currency }) => currency === 'CHF')).toMatchObject([
      { balance_account: 'marketing', available: 0, owed: 0 },
      { balance_account: 'main', available: 0, reserved: 0, pending: 0, owed: 700 },
    ]);
  });

  test('that comes after the check of a payout refuses it at the reservation', async () => {
    const { account_id, key, ask, read } = await openDebtor();
    const { stores } = service;
    // The API has read the balances before the dispute was posted.
    const ledger = { ...stores.ledger, receivables: async () => [] };
    await service.withApp({ stores: { ...stores, ledger } }, async (url) => {
      const body = ask({ ...fromMarketing, amount: 100 });
      expectRefusal(await call(url, 'POST', '/v1/payouts', { key, body }), 'insufficient_balance');
    });
    expect(await read('marketing')).toEqual([50_000, 0]);
    const { receivables } = await stores.ledger.balancesAndReceivables(account_id, false);
    expect(receivables).toMatchObject([{ owed: 1_000 }]);
  });

  test('is left to the next worker when a worker stops within its round', async () => {
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
});
