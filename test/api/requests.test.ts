import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createRequestRecorder } from '../../src/service/requests/recorder';
import type { RequestDocument } from '../../src/store/requests';
import { openUser, openVisitor } from '../support/dashboard';
import { call, eventually, idealPayment } from '../support/http';
import { type Account, useService } from '../support/service';
import { walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();
const DAY_MS = 86_400_000;

const Row = z.looseObject({ request_id: z.string(), status: z.int(), code: z.string().nullable() });

/** Reads the list once it has so many rows. */
const readRows = (account: Account, count: number) =>
  eventually(`${count} requests`, async () => {
    const { body } = await account.get('/v1/requests');
    const rows = z.array(Row).parse(body.data);
    return rows.length === count && rows;
  });

const ask = (key: string, method: string, path: string, body?: object) =>
  call(service.url, method, path, { key, body, idempotencyKey: randomUUID(), once: true });

test('a write is listed with its redacted bodies, a read only where it failed', async () => {
  const shop = await service.account();
  const recipient = {
    type: 'bank_account',
    ...{ first_name: 'Ada', last_name: 'Lovelace', iban: 'NL91ABNA0417164300' },
    reference: 'supplier-7 of Lovelace',
  };
  const path = '/v1/payout-recipients';
  const idempotencyKey = `supplier-${randomUUID()}`;
  const made = await call(service.url, 'POST', path, { ...shop, body: recipient, idempotencyKey });
  expect(made.status).toBe(201);
  expect((await shop.get('/v1/payments?limit=1')).status).toBe(200);
  const missing = await shop.get('/v1/payments/order-7?x=y');
  const [second, first] = await readRows(shop, 2);
  expect(first).toEqual({
    request_id: made.headers.get('Request-Id'),
    object: 'request',
    ...{ method: 'POST', path, status: 201, code: null },
    idempotency_key: idempotencyKey,
    key_id: expect.stringMatching(/^key_/),
    duration_ms: expect.any(Number),
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    request_body: {
      ...{ type: 'bank_account', first_name: '[redacted]', last_name: '[redacted]' },
      ...{ iban: '[redacted]', reference: '[redacted]' },
    },
    response_body: { ...made.body, last4: '[redacted]' },
  });
  expect(second).toMatchObject({
    ...{ method: 'GET', path: '/v1/payments/order-7', status: 404, code: 'payment_not_found' },
    ...{ request_id: missing.body.error.request_id, request_body: null, idempotency_key: null },
  });
});

test('refused keys of an account are listed, those of strangers are not', async () => {
  const shop = await service.account();
  const reader = await service.withKey(shop, false, ['payments:read']);
  const payment = idealPayment();
  expectRefusal(
    await ask(reader.key, 'POST', '/v1/payments', payment),
    'api_key_scope_insufficient',
  );
  expectRefusal(await reader.get('/v1/requests'), 'api_key_scope_insufficient');
  const codes = { revoked: 'api_key_revoked', expired: 'api_key_expired' } as const;
  const changes = {
    revoked: { revoked_at: new Date().toISOString() },
    expired: { expires_at: '2026-01-01T00:00:00.000Z' },
    network: { allowed_cidrs: ['203.0.113.0/24'] },
  };
  for (const [name, change] of Object.entries(changes)) {
    const { key } = await service.withKey(shop, false);
    const keys = await service.stores.keys.forAccount(shop.account_id);
    const _id = keys.at(-1)?._id;
    await service.collection<{ _id: string }>('api_keys').updateOne({ _id }, { $set: change });
    const answer = await ask(key, 'POST', '/v1/payments', payment);
    expect(answer.status).toBe(name === 'network' ? 403 : 401);
  }
  await ask(`sk_sandbox_${'x'.repeat(43)}`, 'POST', '/v1/payments', payment);
  const rows = await readRows(shop, 5);
  expect(rows.map(({ code }) => code)).toEqual([
    'api_key_address_refused',
    codes.expired,
    codes.revoked,
    'api_key_scope_insufficient',
    'api_key_scope_insufficient',
  ]);
  for (const row of rows) expect(row['request_body']).toBeNull();
  expect(JSON.stringify(rows)).not.toContain('127.0.0.1');
});

test('each account and environment has its own, and pages of the last seven days', async () => {
  const shop = await service.account();
  const [live, other] = [await service.withKey(shop, true), await service.account()];
  for (let n = 0; n < 7; n += 1) await shop.get(`/v1/payments/none-${n}`);
  await live.get('/v1/payments/none-7');
  const rows = await readRows(shop, 7);
  expect((await readRows(live, 1))[0]?.['path']).toBe('/v1/payments/none-7');
  expect((await other.get('/v1/requests')).body.data).toEqual([]);
  const get = (query: Record<string, string> = {}) =>
    shop.get(`/v1/requests?${new URLSearchParams(query)}`);
  const ids: string[] = [];
  await walkPages(
    async (query) => {
      const page = await get(query);
      ids.push(
        ...z
          .array(Row)
          .parse(page.body.data)
          .map(({ request_id }) => request_id),
      );
      return page;
    },
    { limit: '3' },
  );
  expect(ids).toEqual(rows.map(({ request_id }) => request_id));
  expectRefusal(await get({ created_before: 'yesterday' }), 'invalid_cursor', ['created_before']);
  expectRefusal(await get({ status: '404' }), 'invalid_request', ['status']);
  const requests = service.collection<RequestDocument>('requests');
  const [oldest] = await requests.find(shopOf(shop)).sort({ position: 1 }).limit(1).toArray();
  const created = new Date(oldest?.created_at ?? '');
  expect(oldest?.expires_at).toEqual(new Date(created.getTime() + 7 * DAY_MS));
  const old = new Date(created.getTime() - 7 * DAY_MS - 1_000).toISOString();
  const position = `${old.slice(0, -1)}000000Z`;
  await requests.updateOne({ _id: oldest?._id ?? '' }, { $set: { position } });
  await eventually('two refusals more', async () => (await get()).body.data.length === 8);
  expect(
    (await get()).body.data.map(({ request_id }: { request_id: string }) => request_id),
  ).not.toContain(oldest?._id);
  const indexes = await requests.indexes();
  expect(indexes).toContainEqual(expect.objectContaining({ expireAfterSeconds: 0 }));
});

const shopOf = ({ account_id }: Account) => ({ account_id, livemode: false });

test('the dashboard lists requests, filters them by status, and shows one', async () => {
  const shop = await service.account();
  const user = await openUser(service.stores, shop.account_id, 'read_only');
  const by = await openVisitor(service, user);
  const empty = await by.get('/dashboard/live/requests');
  expect(empty.html).toContain('There are no requests yet.');
  await shop.get('/v1/payments/none-1');
  await ask(shop.key, 'POST', '/v1/payments', { ...idealPayment(), first_name: 'Quenntinella' });
  const [row] = await readRows(shop, 2);
  const list = (query: string) => by.get(`/dashboard/sandbox/requests${query}`);
  const count = async (query: string) =>
    (await list(query)).html.match(/href="\/dashboard\/sandbox\/requests\/[0-9a-f-]{36}"/g)
      ?.length ?? 0;
  expect(await count('')).toBe(2);
  expect(await count('?status=refused')).toBe(2);
  expect(await count('?status=failed')).toBe(0);
  expect(await count(`?search=${row?.request_id}`)).toBe(1);
  const { html } = await by.get(`/dashboard/sandbox/requests/${row?.request_id}`);
  for (const text of ['POST /v1/payments', '400', 'invalid_request', 'Request body', 'ideal']) {
    expect(html).toContain(text);
  }
  expect(html).not.toContain('Quenntinella');
  const stranger = await service.account();
  const elsewhere = await openVisitor(service, await openUser(service.stores, stranger.account_id));
  for (const visitor of [by, elsewhere]) {
    const env = visitor === by ? 'live' : 'sandbox';
    expect((await visitor.get(`/dashboard/${env}/requests/${row?.request_id}`)).status).toBe(404);
  }
});

describe('the recorder', () => {
  const answered = (changes: object = {}) => ({
    ...{ request_id: randomUUID(), account_id: 'account_x', livemode: false, key_id: 'key_x' },
    ...{ method: 'POST', path: '/v1/payments', status: 201, code: null, duration_ms: 1 },
    at: new Date(),
    readExchange: () => ({
      params: {},
      request: undefined,
      response: undefined,
      idempotencyKey: undefined,
    }),
    ...changes,
  });
  const log = { warn: () => undefined };
  const open = (insertAll: (documents: readonly RequestDocument[]) => Promise<void>) => {
    const registry = new Registry();
    const recorder = createRequestRecorder({ stores: { requests: { insertAll } }, log, registry });
    return { ...recorder, dropped: () => registry.metrics() };
  };

  test('writes what was answered in one batch, at its end too, and each once', async () => {
    const batches: number[] = [];
    const writes: Promise<void>[] = [];
    const { insertAll } = service.stores.requests;
    const write = async (documents: readonly RequestDocument[]) => {
      await insertAll(documents);
      // The answer of the database is lost.
      if (batches.length === 1) await insertAll(documents);
    };
    const recorder = open((documents) => {
      batches.push(documents.length);
      const writing = write(documents);
      writes.push(writing);
      return writing;
    });
    const calls = Array.from({ length: 20 }, () => answered({ account_id: 'account_batch' }));
    for (const each of calls) recorder.record(each);
    await recorder.close();
    expect(batches).toEqual([20]);
    // The recorder waits 3 s at its end, and a busy machine may write for longer.
    await Promise.all(writes);
    const stored = { account_id: 'account_batch' };
    expect(await service.collection('requests').countDocuments(stored)).toBe(20);
  });

  test('keeps some while the database is away, and counts what it drops', async () => {
    let isAway = true;
    const stored: RequestDocument[] = [];
    const recorder = open(async (documents) => {
      if (isAway) throw new Error('away');
      stored.push(...documents);
    });
    for (let n = 0; n < 2_100; n += 1) recorder.record(answered());
    expect(await recorder.dropped()).toContain('payments_requests_dropped_total 100\n');
    isAway = false;
    await recorder.close();
    expect(stored).toHaveLength(2_000);
  });

  test('gives up at its end while the database is away', async () => {
    const recorder = open(() => Promise.reject(new Error('away')));
    recorder.record(answered());
    await recorder.close();
    expect(await recorder.dropped()).toContain('payments_requests_dropped_total 1\n');
  });

  test('stores some answers over a rate limit, not a flood of them', async () => {
    const stored: RequestDocument[] = [];
    const recorder = open(async (documents) => void stored.push(...documents));
    for (let n = 0; n < 50; n += 1)
      recorder.record(answered({ status: 429, code: 'rate_limited' }));
    recorder.record(answered());
    await recorder.close();
    expect(stored).toHaveLength(6);
  });

  test('a body that cannot be read loses its own row only', async () => {
    const stored: RequestDocument[] = [];
    const recorder = open(async (documents) => void stored.push(...documents));
    const readExchange = () => {
      throw new Error('unreadable');
    };
    recorder.record(answered({ readExchange }));
    recorder.record(answered());
    await recorder.close();
    expect(stored).toHaveLength(1);
  });
});
