import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { createPayment } from '../../src/domain/wire/payments';
import { createRequestRecorder } from '../../src/service/events/requests/recorder';
import type { RequestDocument } from '../../src/store/requests';
import { call, eventually, idealPayment } from '../support/http';
import { type Account, useService } from '../support/service';
import { walkPages } from './pages';
import { bankRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';

const DAY_MS = 86_400_000;

interface Row {
  request_id: string;
  path: string;
  code: string | null;
  request_body: unknown;
}

const service = useService();

/** Reads the list once it has so many rows: requests are recorded in the background. */
const readRows = (account: Account, count: number) =>
  eventually(`${count} requests`, async () => {
    const { data } = (await account.get('/v1/requests')).body;
    return data.length === count && (data as Row[]);
  });

test('a write is listed with redacted bodies, and a read only when it is refused', async () => {
  const shop = await service.account();
  const body = bankRecipient({ reference: 'supplier-7 of Hopper' });
  const [path, idempotencyKey] = ['/v1/payout-recipients', `supplier-${randomUUID()}`];
  const created = await shop.post(path, body, { idempotencyKey });
  expect((await shop.get('/v1/payments?limit=1')).status).toBe(200);
  const missing = await shop.get('/v1/payments/order-7?x=y');
  const [second, first] = await readRows(shop, 2);
  const redacted = Object.keys(body).map((field) => [field, '[redacted]']);
  expect(first).toEqual({
    request_id: created.headers.get('Request-Id'),
    object: 'request',
    ...{ method: 'POST', path, status: 201, code: null },
    idempotency_key: idempotencyKey,
    key_id: expect.stringMatching(/^key_/),
    duration_ms: expect.any(Number),
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    request_body: { ...Object.fromEntries(redacted), type: 'bank_account' },
    response_body: { ...created.body, last4: '[redacted]' },
  });
  expect(second).toMatchObject({
    ...{ method: 'GET', path: '/v1/payments/order-7', status: 404, code: 'payment_not_found' },
    ...{ request_id: missing.body.error.request_id, request_body: null, idempotency_key: null },
  });
});

test('a request with a refused key of the account is listed, one with an unknown key is not', async () => {
  const shop = await service.account();
  const reader = await service.withKey(shop, false, ['payments:read']);
  const createPayment = (key: string) =>
    call(service.url, 'POST', '/v1/payments', {
      ...{ key, body: idealPayment(), once: true },
      idempotencyKey: randomUUID(),
    });
  expectRefusal(await createPayment(reader.key), 'api_key_scope_insufficient');
  expectRefusal(await reader.get('/v1/requests'), 'api_key_scope_insufficient');
  const { key } = await service.withKey(shop, false);
  const revoked = (await service.stores.keys.forAccount(shop.account_id)).at(-1)?._id ?? '';
  await service.stores.keys.revoke(revoked, new Date().toISOString());
  expectRefusal(await createPayment(key), 'api_key_revoked');
  await createPayment(`sk_sandbox_${'x'.repeat(43)}`);
  const rows = await readRows(shop, 3);
  expect(rows.map(({ code }) => code)).toEqual([
    'api_key_revoked',
    'api_key_scope_insufficient',
    'api_key_scope_insufficient',
  ]);
  for (const row of rows) expect(row.request_body).toBeNull();
  expect(JSON.stringify(rows)).not.toContain('127.0.0.1');
});

test('the list has the last seven days of one account and environment, page by page', async () => {
  const shop = await service.account();
  const [live, other] = [await service.withKey(shop, true), await service.account()];
  for (let n = 0; n < 7; n += 1) await shop.get(`/v1/payments/none-${n}`);
  await live.get('/v1/payments/none-7');
  const rows = await readRows(shop, 7);
  expect((await readRows(live, 1))[0]?.path).toBe('/v1/payments/none-7');
  expect((await other.get('/v1/requests')).body.data).toEqual([]);
  const seen: string[] = [];
  const readPage = async (query: Record<string, string>) => {
    const page = await shop.get(`/v1/requests?${new URLSearchParams(query)}`);
    seen.push(...page.body.data.map(({ request_id }: Row) => request_id));
    return page;
  };
  await walkPages(readPage, { limit: '3' });
  expect(seen).toEqual(rows.map(({ request_id }) => request_id));
  const requests = service.collection<RequestDocument>('requests');
  const owner = { account_id: shop.account_id, livemode: false };
  const [oldest] = await requests.find(owner).sort({ position: 1 }).limit(1).toArray();
  const created = new Date(oldest?.created_at ?? '');
  expect(oldest?.expires_at).toEqual(new Date(created.getTime() + 7 * DAY_MS));
  const old = new Date(created.getTime() - 7 * DAY_MS - 1_000).toISOString();
  const position = `${old.slice(0, -1)}000000Z`;
  await requests.updateOne({ _id: oldest?._id ?? '' }, { $set: { position } });
  // One row is too old by now.
  const shown = await readRows(shop, 6);
  expect(shown.map(({ request_id }) => request_id)).not.toContain(oldest?._id);
  expect(await requests.indexes()).toContainEqual(
    expect.objectContaining({ expireAfterSeconds: 0 }),
  );
});

describe('the recorder of requests', () => {
  const buildCall = (changes: object = {}) => ({
    ...{ request_id: randomUUID(), account_id: 'account_x', livemode: false, key_id: 'key_x' },
    ...{ method: 'POST', path: '/v1/payments', status: 201, code: null, duration_ms: 1 },
    at: new Date(),
    readExchange: () => ({
      endpoint: createPayment,
      ...{ params: {}, query: {}, request: undefined, status: 201, response: undefined },
      idempotencyKey: undefined,
    }),
    ...changes,
  });
  const open = (insertAll: (documents: readonly RequestDocument[]) => Promise<void>) => {
    const registry = new Registry();
    const log = { warn: () => undefined };
    const recorder = createRequestRecorder({ stores: { requests: { insertAll } }, log, registry });
    return { ...recorder, readMetrics: () => registry.metrics() };
  };

  test('writes at its end in one batch, and once when the answer of the database is lost', async () => {
    const account_id = `account_${randomUUID()}`;
    const batches: number[] = [];
    const writes: Promise<void>[] = [];
    const { insertAll } = service.stores.requests;
    const writeTwice = async (documents: readonly RequestDocument[]) => {
      await insertAll(documents);
      await insertAll(documents);
    };
    const recorder = open((documents) => {
      batches.push(documents.length);
      const writing = writeTwice(documents);
      writes.push(writing);
      return writing;
    });
    for (let n = 0; n < 20; n += 1) recorder.record(buildCall({ account_id }));
    await recorder.close();
    expect(batches).toEqual([20]);
    // The recorder waits 3 s at its end, and a busy machine may write for longer.
    await Promise.all(writes);
    expect(await service.collection('requests').countDocuments({ account_id })).toBe(20);
  });

  test('stores a bounded number while the database is away, counts what it drops, and gives up at its end', async () => {
    let isAway = true;
    const stored: RequestDocument[] = [];
    const recorder = open(async (documents) => {
      if (isAway) throw new Error('away');
      stored.push(...documents);
    });
    for (let n = 0; n < 2_100; n += 1) recorder.record(buildCall());
    expect(await recorder.readMetrics()).toContain('payments_requests_dropped_total 100\n');
    isAway = false;
    await recorder.close();
    expect(stored).toHaveLength(2_000);
    const hopeless = open(() => Promise.reject(new Error('away')));
    hopeless.record(buildCall());
    await hopeless.close();
    expect(await hopeless.readMetrics()).toContain('payments_requests_dropped_total 1\n');
  });

  test('stores few of a flood over a rate limit, and all others but an unreadable one', async () => {
    const stored: RequestDocument[] = [];
    const recorder = open(async (documents) => void stored.push(...documents));
    const readExchange = () => {
      throw new Error('unreadable');
    };
    const flood = { status: 429, code: 'rate_limited' };
    for (let n = 0; n < 50; n += 1) recorder.record(buildCall(flood));
    for (const changes of [{ readExchange }, {}]) recorder.record(buildCall(changes));
    await recorder.close();
    expect(stored).toHaveLength(6);
  });
});
