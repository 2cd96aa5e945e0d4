import { randomUUID } from 'node:crypto';
import { Contention } from '../../src/base/mongo';
import { createConnectorKey } from '../../src/callbacks/keys';
import { createEncrypter } from '../../src/encryption/encrypter';
import { makeKey } from '../../src/store/keys';
import { signPayload } from '../../src/webhooks/signature';
import { operatorsAudit } from '../support/audit';
import { useFixture } from '../support/fixture';
import { gate } from '../support/gate';
import { type Answer, type Client, call, createClient, eventually } from '../support/http';
import { type Account, type AccountOptions, useService } from '../support/service';
import { bankRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';
import { inOneWindow } from './window';

/** Calls a second, counted over windows of ten seconds. */
const LIMITS = {
  RATE_LIMIT_PER_SECOND: 2,
  ACCOUNT_LIMIT_PER_SECOND: 3,
  SANDBOX_CREATE_LIMIT_PER_SECOND: 1,
  CREATE_LIMIT_PER_SECOND: 1,
};
/** Calls of one key in a window. */
const BURST = 20;

const service = useService();
/** The API with low limits, which other files would exceed. */
const limited = useFixture(
  async () => {
    const { opened, release } = gate();
    let serving = Promise.resolve('');
    const url = await new Promise<string>((resolve) => {
      serving = service.withApp({ config: LIMITS }, async (served) => {
        resolve(served);
        await opened;
      });
    });
    const stop = async () => {
      release();
      await serving;
    };
    return { url, stop };
  },
  ({ stop }) => stop(),
);

afterEach(() => jest.restoreAllMocks());

const limit = (account: Account) => ({ ...account, ...createClient(limited.url, account.key) });
const openShop = async (options?: AccountOptions) => limit(await service.account(options));
const addKey = async (shop: Account, livemode: boolean) =>
  limit(await service.withKey(shop, livemode));

const get = (shop: Client) => shop.get('/v1/payment-methods/available');
const create = (shop: Client, idempotencyKey: string = randomUUID()) =>
  shop.post('/v1/payout-recipients', bankRecipient(), { idempotencyKey });
const readNumber = ({ headers }: { headers: Headers }, name: string) =>
  Number(headers.get(name) ?? Number.NaN);
const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make);
const countStatuses = async (calls: Promise<Answer>[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(calls)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

test(
  'each answer says what is left of the limit of its key, and a call over it is refused until the reset',
  inOneWindow(async () => {
    const shop = await openShop();
    const first = await get(shop);
    expect(readNumber(first, 'RateLimit-Limit')).toBe(BURST);
    expect(readNumber(first, 'RateLimit-Remaining')).toBe(BURST - 1);
    expect(readNumber(first, 'RateLimit-Reset')).toBeGreaterThanOrEqual(1);
    expect(readNumber(first, 'RateLimit-Reset')).toBeLessThanOrEqual(10);
    expect(readNumber(await get(shop), 'RateLimit-Remaining')).toBe(BURST - 2);
    // Calls that fail count too.
    const calls = times(BURST * 2, () => shop.get('/v1/payments/some-id'));
    expect(await countStatuses(calls)).toEqual({ 404: BURST - 2, 429: BURST + 2 });
    const refused = await create(shop, 'limited');
    const began = Date.now();
    expectRefusal(refused, 'rate_limited');
    expect(refused.body.error.message).toContain('2 a second');
    const after = readNumber(refused, 'Retry-After');
    expect(after).toBeGreaterThanOrEqual(1);
    expect(after).toBeLessThanOrEqual(10);
    expect(readNumber(refused, 'RateLimit-Remaining')).toBe(0);
    expect(readNumber(refused, 'RateLimit-Reset')).toBe(after);
    expect(await shop.count('recipients')).toBe(0);
    await eventually('the end of the window', async () => Date.now() - began >= after * 1_000);
    const repeat = await create(shop, 'limited');
    expect([repeat.status, repeat.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
  }),
);

test(
  'all keys of an account in one environment share a second limit',
  inOneWindow(async () => {
    const shop = await openShop();
    const second = await addKey(shop, false);
    expect(await countStatuses(times(20, () => get(shop)))).toEqual({ 200: 20 });
    expect(await countStatuses(times(15, () => get(second)))).toEqual({ 200: 10, 429: 5 });
    const refused = await get(second);
    expectRefusal(refused, 'rate_limited');
    expect(refused.body.error.message).toContain('account: at most 3 a second');
    expect(readNumber(refused, 'RateLimit-Limit')).toBe(30);
    expect(readNumber(refused, 'RateLimit-Remaining')).toBe(0);
    for (const other of [await addKey(shop, true), await openShop()]) {
      expect((await get(other)).status).toBe(200);
    }
  }),
);

test(
  'a list counts one more call for each ten rows of its limit',
  inOneWindow(async () => {
    const shop = await openShop();
    const list = (query: string) => shop.get(`/v1/payments${query}`);
    const readLeft = async (query: string) => readNumber(await list(query), 'RateLimit-Remaining');
    const left = [await readLeft(''), await readLeft('?limit=9'), await readLeft('?limit=100')];
    expect(left).toEqual([17, 16, 5]);
    const refused = await list('?limit=100');
    expectRefusal(refused, 'rate_limited');
    expect(readNumber(refused, 'Retry-After')).toBeGreaterThanOrEqual(1);
    const invalid = await (await openShop()).get('/v1/payments?limit=101');
    expect([invalid.status, readNumber(invalid, 'RateLimit-Remaining')]).toEqual([400, 19]);
  }),
);

test(
  'an account with slow lists leaves the lists of other accounts their share',
  inOneWindow(async () => {
    const [shop, other] = [await openShop(), await openShop()];
    const { list } = service.stores.payments;
    const slow = gate();
    const read = jest.spyOn(service.stores.payments, 'list').mockImplementation(async (filter) => {
      if (filter.account_id === shop.account_id) await slow.opened;
      return await list(filter);
    });
    try {
      const calls = countStatuses(times(18, () => shop.get('/v1/payments?limit=1')));
      await eventually('the reads to wait', async () => read.mock.calls.length === 15);
      expect((await other.get('/v1/payments?limit=1')).status).toBe(200);
      expect((await create(shop)).status).toBe(201);
      expect(read).toHaveBeenCalledTimes(16);
      slow.release();
      expect(await calls).toEqual({ 200: 18 });
    } finally {
      slow.release();
    }
  }),
);

test('an account changes two settings at once, and other accounts do not wait for it', async () => {
  const [shop, other] = [await openShop(), await openShop()];
  const slow = gate();
  const { get: find } = service.stores.recipients;
  const read = jest.spyOn(service.stores.recipients, 'get').mockImplementation(async (id) => {
    if (id === 'slow') await slow.opened;
    return await find(id);
  });
  // Without the limits of this file.
  await service.withApp({}, async (url) => {
    const erase = ({ key }: Account, id: string) =>
      createClient(url, key).delete(`/v1/payout-recipients/${id}`);
    const answers = countStatuses(times(5, () => erase(shop, 'slow')));
    await eventually('two deletions', async () => read.mock.calls.length === 2);
    expect((await erase(other, 'fast')).status).toBe(404);
    expect(read).toHaveBeenCalledTimes(3);
    slow.release();
    expect(await answers).toEqual({ 404: 5 });
  });
});

test('a change that has met the locks of others for too long is to be repeated', async () => {
  const shop = await openShop();
  const conflict = new Contention('The transaction had write conflicts.', 1_000);
  jest.spyOn(service.stores.recipients, 'get').mockRejectedValueOnce(conflict);
  const refused = await shop.delete('/v1/payout-recipients/any');
  expectRefusal(refused, 'temporarily_unavailable');
  expect(readNumber(refused, 'Retry-After')).toBe(1);
});

test('an account with slow creates leaves other accounts some of the creates at once', async () => {
  const [neighbor, shop] = [await openShop(), await openShop()];
  const slow = gate();
  const { insert } = service.stores.recipients;
  const waiting = jest.spyOn(service.stores.recipients, 'insert');
  waiting.mockImplementation(async (recipient) => {
    if (recipient.account_id === neighbor.account_id) await slow.opened;
    return await insert(recipient);
  });
  // Without the limits of this file.
  await service.withApp({ config: { CREATES_AT_ONCE: 10 } }, async (url) => {
    const createAt = ({ key }: Account) =>
      call(url, 'POST', '/v1/payout-recipients', {
        ...{ key, body: bankRecipient(), once: true },
        idempotencyKey: randomUUID(),
      });
    const refused: Answer[] = [];
    // Eight run, fifty wait.
    const answers = times(8 + 50 + 4, async () => {
      const answer = await createAt(neighbor);
      if (answer.status !== 201) refused.push(answer);
    });
    await eventually('four creates too many', async () => refused.length === 4);
    for (const _ of [1, 2]) expect((await createAt(shop)).status).toBe(201);
    slow.release();
    await Promise.all(answers);
    expect(refused).toHaveLength(4);
    for (const answer of refused) {
      expectRefusal(answer, 'temporarily_unavailable');
      expect(answer.body.error.message).toContain('Nothing was done');
    }
  });
});

test(
  'creates have a lower limit, apart in sandbox and live, which simulations of any resource share',
  inOneWindow(async () => {
    const shop = await openShop();
    const path = `/v1/sandbox/payments/${randomUUID()}/simulate`;
    expect((await shop.post(path, { event: 'settled' })).status).toBe(404);
    expect(await countStatuses(times(12, () => create(shop)))).toEqual({ 201: 9, 429: 3 });
    const refused = await create(shop);
    expectRefusal(refused, 'rate_limited');
    expect(refused.body.error.message).toContain('created by one account: at most 1 a second');
    expect(readNumber(refused, 'Retry-After')).toBeGreaterThanOrEqual(1);
    expect(readNumber(refused, 'RateLimit-Limit')).toBe(10);
    expectRefusal(await shop.post(path, { event: 'settled' }), 'rate_limited');
    expect(await shop.count('idempotency_records')).toBe(9);
    expect((await get(shop)).status).toBe(200);
    for (const other of [await addKey(shop, true), await openShop()]) {
      expect((await create(other)).status).toBe(201);
    }
  }),
);

test(
  'a key without the scope has the limits of any key, and does not count as used',
  inOneWindow(async () => {
    const shop = await openShop({ scopes: ['payments:read'] });
    expect(await countStatuses(times(25, () => create(shop)))).toEqual({ 403: 20, 429: 5 });
    expect((await create(await addKey(shop, false))).status).toBe(201);
    const [first] = await service.stores.keys.forAccount(shop.account_id);
    expect(first?.last_used_at).toBeNull();
  }),
);

test('paths without a key and wrong keys have no limit of a key', async () => {
  const wrong = createClient(limited.url, makeKey(false));
  for (let i = 0; i < BURST + 5; i += 1) {
    expect((await fetch(`${limited.url}/healthz`)).status).toBe(200);
    expectRefusal(await get(wrong), 'api_key_invalid');
  }
});

test(
  'callbacks of one connector have a limit, and each answer says what is left',
  inOneWindow(async () => {
    const { stores, mongo, keys } = service;
    const connector = `limited-${randomUUID().slice(0, 8)}`;
    const encrypter = createEncrypter(keys.seal);
    const audit = operatorsAudit(stores);
    const deps = { stores, mongo, now: () => new Date(), audit, encrypter };
    const { secret } = await createConnectorKey(deps, connector);
    const post = () => {
      const signature = signPayload(secret, '{}', Math.floor(Date.now() / 1_000));
      const headers = { 'Connector-Signature': signature };
      const path = `${limited.url}/connectors/${connector}/callbacks`;
      return fetch(path, { method: 'POST', headers, body: '{}' });
    };
    for (let left = BURST - 1; left >= 0; left -= 1) {
      const answer = await post();
      expect([answer.status, readNumber(answer, 'RateLimit-Remaining')]).toEqual([400, left]);
    }
    const refused = await post();
    expect([refused.status, readNumber(refused, 'RateLimit-Remaining')]).toEqual([429, 0]);
    expect(readNumber(refused, 'Retry-After')).toBeGreaterThanOrEqual(1);
  }),
);
