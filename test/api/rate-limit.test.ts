import { randomUUID } from 'node:crypto';
import { createConnectorKey } from '../../src/callbacks/keys';
import { createEncrypter } from '../../src/encryption/encrypter';
import { makeKey } from '../../src/store/keys';
import { signPayload } from '../../src/webhooks/signature';
import { operatorsAudit } from '../support/audit';
import { call, eventually, idealPayment, readReplayed } from '../support/http';
import { openKey, useService } from '../support/service';
import { expectRefusal } from './refusal';
import { inOneWindow } from './window';

/** Two a second, counted over ten seconds. */
const BURST = 20;

const service = useService({ ratePerSecond: 2 });

const get = (key: string) => call(service.url, 'GET', '/v1/payment-methods/available', { key });
const numberOf = (headers: Headers, name: string) => Number(headers.get(name) ?? Number.NaN);

async function spend(key: string): Promise<void> {
  for (let i = 0; i < BURST; i += 1) expect((await get(key)).status).toBe(200);
}

test(
  'each answer tells what is left of the limit',
  inOneWindow(async () => {
    const { key } = await service.account();
    const first = await get(key);
    expect(numberOf(first.headers, 'RateLimit-Limit')).toBe(BURST);
    expect(numberOf(first.headers, 'RateLimit-Remaining')).toBe(BURST - 1);
    expect(numberOf(first.headers, 'RateLimit-Reset')).toBeGreaterThanOrEqual(1);
    expect(numberOf(first.headers, 'RateLimit-Reset')).toBeLessThanOrEqual(10);
    expect(numberOf((await get(key)).headers, 'RateLimit-Remaining')).toBe(BURST - 2);
  }),
);

test(
  'past the limit a call is a 429 with Retry-After; after that time it is taken',
  inOneWindow(async () => {
    const { account_id, key } = await service.account();
    await spend(key);
    const refused = await call(service.url, 'POST', '/v1/payments', {
      key,
      body: idealPayment(),
      idempotencyKey: 'limited',
    });
    const begun = Date.now();
    expectRefusal(refused, 'rate_limited');
    expect(refused.body.error.message).toContain('2 a second');
    const after = numberOf(refused.headers, 'Retry-After');
    expect(after).toBeGreaterThanOrEqual(1);
    expect(after).toBeLessThanOrEqual(10);
    expect(numberOf(refused.headers, 'RateLimit-Remaining')).toBe(0);
    expect(numberOf(refused.headers, 'RateLimit-Reset')).toBe(after);
    const found = await service.stores.payments.list({ account_id, livemode: false, limit: 1 });
    expect(found).toEqual([]);

    await eventually('the end of the window', async () => Date.now() - begun >= after * 1_000);
    const retry = await call(service.url, 'POST', '/v1/payments', {
      key,
      body: idealPayment(),
      idempotencyKey: 'limited',
    });
    expect(retry.status).toBe(201);
    expect(readReplayed(retry)).toBeNull();
  }),
);

test(
  'refused calls count too, and each key has a limit of its own',
  inOneWindow(async () => {
    const { account_id, key } = await service.account();
    for (let i = 0; i < BURST; i += 1) {
      const answer = await call(service.url, 'GET', '/v1/payments/some-id', { key });
      expectRefusal(answer, 'payment_not_found');
    }
    expectRefusal(await get(key), 'rate_limited');
    const second = await openKey(service.stores, account_id, false);
    expect((await get(second)).status).toBe(200);
  }),
);

test(
  'at once, no more calls pass than the limit allows',
  inOneWindow(async () => {
    const { key } = await service.account();
    const answers = await Promise.all(Array.from({ length: BURST * 3 }, () => get(key)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(BURST);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(BURST * 2);
  }),
);

test('what needs no key has no limit of a key, and a wrong key is no 429', async () => {
  for (let i = 0; i < BURST + 5; i += 1) {
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    expectRefusal(await get(makeKey(false)), 'api_key_invalid');
  }
});

test(
  'callbacks of one connector are limited, each answer telling what is left',
  inOneWindow(async () => {
    const { stores, mongo, keys, url } = service;
    const connector = `limited-${randomUUID().slice(0, 8)}`;
    const deps = { stores, mongo, now: () => new Date(), audit: operatorsAudit(stores) };
    const sealer = createEncrypter(keys.seal);
    const { secret } = await createConnectorKey({ ...deps, encrypter: sealer }, connector);
    const body = '{}';
    const post = async () => {
      const signature = signPayload(secret, body, Math.floor(Date.now() / 1_000));
      const headers = { 'Connector-Signature': signature };
      return await fetch(`${url}/connectors/${connector}/callbacks`, {
        method: 'POST',
        headers,
        body,
      });
    };
    for (let left = BURST - 1; left >= 0; left -= 1) {
      const answer = await post();
      expect([answer.status, numberOf(answer.headers, 'RateLimit-Remaining')]).toEqual([400, left]);
    }
    const refused = await post();
    expect([refused.status, numberOf(refused.headers, 'RateLimit-Remaining')]).toEqual([429, 0]);
    expect(numberOf(refused.headers, 'Retry-After')).toBeGreaterThanOrEqual(1);
  }),
);
