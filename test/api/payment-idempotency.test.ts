import { randomBytes, randomUUID } from 'node:crypto';
import type { IdempotencyRecord } from '../../src/store/idempotency';
import { type Client, idealPayment, readReplayed } from '../support/http';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useAccount(service);

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;
const create = (idempotencyKey: string, body: unknown = idealPayment(), as: Client = shop) =>
  as.post('/v1/payments', body, { idempotencyKey });
const createRaw = (idempotencyKey: string, raw: string) =>
  shop.postRaw('/v1/payments', raw, { idempotencyKey });
const claims = () => service.collection<IdempotencyRecord>('idempotency');

test('key order, white space and escapes make no other body', async () => {
  const body = idealPayment({ customer: { email: 'a@b.nl', first_name: 'Zoë' } });
  const first = await create('ways', body);
  const reversed = Object.fromEntries(Object.entries(body).reverse());
  const text = JSON.stringify(reversed, null, '\t').replace('Zoë', 'Zo\\u00eb');
  const again = await createRaw('ways', text);
  expect({ status: again.status, text: again.text }).toEqual({ status: 201, text: first.text });
  expect(again.headers.get('Idempotent-Replayed')).toBe('true');
});

test('numbers in metadata that are written in another way are another body', async () => {
  const body = (number: string) =>
    JSON.stringify(idealPayment({ metadata: 0 })).replace(
      '"metadata":0',
      `"metadata":{"n":${number}}`,
    );
  await createRaw('numbers', body('12345678901234567890'));
  expectRefusal(await createRaw('numbers', body('12345678901234567891')), 'idempotency_key_reused');
});

test('a key belongs to one account and one environment', async () => {
  const other = await service.account();
  const first = await create('shared');
  const foreign = await create('shared', idealPayment({ amount: 5 }), other);
  expect(foreign.status).toBe(201);
  expect(foreign.body.id).not.toBe(first.body.id);
  const live = await service.withKey(shop, true);
  // No live connector: were the key shared, this would be the sandbox payment again.
  expectRefusal(await create('shared', idealPayment(), live), 'method_requirements_not_met');
  const second = await service.withKey(shop, false);
  expect((await create('shared', idealPayment(), second)).text).toBe(first.text);
});

test('fifty calls at once with one key and two bodies make one payment', async () => {
  const busy = await service.account();
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      create('two', idealPayment({ amount: 1 + (i % 2) }), busy),
    ),
  );
  const amounts = new Set(answers.filter(({ status }) => status === 201).map((a) => a.body.amount));
  expect(amounts.size).toBe(1);
  for (const answer of answers.filter(({ status }) => status !== 201)) {
    expectRefusal(answer, 'idempotency_key_reused');
  }
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(25);
  expect(await busy.count('payments')).toBe(1);
});

test('after 24 hours the key is free again, also when the cleaner is late', async () => {
  const first = await create('daily');
  const age = async (ms: number) => {
    const created_at = new Date(Date.now() - ms);
    const expires_at = new Date(created_at.getTime() + DAY_MS);
    // The cleaner may have come between; then there is nothing left to move.
    await claims().updateOne(
      { account_id: shop.account_id, key: 'daily' },
      { $set: { created_at, expires_at } },
    );
  };
  await age(DAY_MS - HOUR_MS);
  expect((await create('daily')).text).toBe(first.text);
  await age(DAY_MS + 1);
  const next = await create('daily', idealPayment({ reference: randomUUID() }));
  expect(next.status).toBe(201);
  expect(readReplayed(next)).toBeNull();
  expect(next.body.id).not.toBe(first.body.id);
  expectRefusal(await create('daily'), 'idempotency_key_reused');
});

test('a claim that is done gives up its request, and is cleaned away 24 hours later', async () => {
  const begun = Date.now();
  await create('kept');
  const took = Date.now() - begun;
  const claim = await claims().findOne({ account_id: shop.account_id, key: 'kept' });
  expect(claim?.request).toBeNull();
  const life = Number(claim?.expires_at) - Number(claim?.created_at);
  expect(life).toBeGreaterThanOrEqual(DAY_MS);
  expect(life).toBeLessThanOrEqual(DAY_MS + took);
});

test('a key whose resource was made long after the first call keeps its answer for a day from then', async () => {
  const { stores, now } = { stores: service.stores, now: new Date() };
  const resource_id = randomUUID();
  const claimKey = {
    account_id: shop.account_id,
    livemode: false,
    operation: 'createPayment',
    key: 'outage',
  };
  const made = { fingerprint: 'f', resource_id, request_id: 'r' };
  const request = { recipient: Object() };
  await stores.idempotency.reserveKey({ ...claimKey, ...made, request }, now);
  const twoDaysAgo = new Date(now.getTime() - 2 * DAY_MS);
  await claims().updateOne({ resource_id }, { $set: { created_at: twoDaysAgo } });
  await stores.idempotency.markWritten(resource_id);
  const soon = new Date(Date.now() + DAY_MS - HOUR_MS);
  expect(await stores.idempotency.find(claimKey, soon, 'hash')).toMatchObject({ resource_id });
  const later = new Date(Date.now() + DAY_MS + HOUR_MS);
  expect(await stores.idempotency.find(claimKey, later, 'hash')).toBeNull();
});

test('after its key is replaced, a link leads nowhere', async () => {
  const { body } = await create('replaced-key');
  expect((await fetch(body.redirect_url)).status).toBe(200);
  const { keys } = service;
  const { pay_token } = keys;
  keys.pay_token = randomBytes(32);
  expect((await fetch(body.redirect_url)).status).toBe(404);
  keys.pay_token = pay_token;
});
