import { randomBytes, randomUUID } from 'node:crypto';
import { parseJson } from '../../src/base/json';
import { Refusal } from '../../src/domain/errors';
import { methodRules } from '../../src/domain/payment/catalog';
import { createEncrypter } from '../../src/encryption/encrypter';
import { type CreatedResource, createOnce } from '../../src/service/create-once';
import type { IdempotencyRecord } from '../../src/store/idempotency';
import { useFreshFixture } from '../support/fixture';
import { readPayloads } from '../support/histories';
import { type Client, call, eventually, idealPayment, readReplayed } from '../support/http';
import { useAccount, useService } from '../support/service';
import { KEYED, type KeyedCreator } from './create-setting';
import { exchange } from './exchange';
import { fund } from './fund';
import { credit, useFreshShop } from './payout-setting';
import { bankRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

const service = useService();
const records = () => service.collection<IdempotencyRecord>('idempotency');
const findRecord = ({ account_id }: { account_id: string }, operation: string, key: string) =>
  records().findOne({ account_id, operation, key });

describe.each(KEYED)('the idempotency key of $name', (creating) => {
  const { path, operation, collection, crowd, forbidden, others, refused } = creating;
  let creator: KeyedCreator;
  const open = async () => {
    creator = await creating.open(service);
  };
  const create = (idempotencyKey: string, change: object = {}) =>
    creator.post(path, { ...creator.body, ...change }, { idempotencyKey });
  const count = () => creator.count(collection);

  describe('of an account without resources', () => {
    beforeEach(open);

    test('repeats the first answer, also after the resource has changed', async () => {
      const first = await create('same');
      const again = await create('same');
      expect(readReplayed(first)).toBeNull();
      expect([again.status, again.text]).toEqual([201, first.text]);
      expect(again.headers.get('Idempotent-Replayed')).toBe('true');
      expect(await count()).toBe(1);
      if (creator.advance === undefined) return;
      await creator.advance(first.body.id);
      expect((await creator.get(`${path}/${first.body.id}`)).text).not.toBe(first.text);
      expect((await create('same')).text).toBe(first.text);
      expect(await count()).toBe(1);
    });

    if (forbidden !== undefined) {
      test('repeats the first answer also when the rules now refuse a new resource', async () => {
        const first = await create('all');
        await creator.forbid?.();
        expectRefusal(await create('more'), forbidden);
        expect((await create('all')).text).toBe(first.text);
      });
    }

    test.each(others)(
      'refuses a repeat with %s, and names the first resource',
      async (_, change) => {
        const first = await create('other');
        const other = await create('other', change);
        expectRefusal(other, 'idempotency_key_reused');
        expect(other.body.error.message).toContain(first.body.id);
        expect((await create('other')).text).toBe(first.text);
        expect(await count()).toBe(1);
      },
    );

    test('is free for another operation', async () => {
      const isRecipient = operation === 'createRecipient';
      const [to, body] = isRecipient
        ? (['/v1/payments', idealPayment()] as const)
        : (['/v1/payout-recipients', bankRecipient()] as const);
      const other = await creator.post(to, body, { idempotencyKey: 'shared' });
      expect(other.status).toBe(201);
      const answer = await create('shared');
      expect([answer.status, readReplayed(answer)]).toEqual([201, null]);
    });

    test(`creates one resource for ${crowd} simultaneous calls, and one answer`, async () => {
      const answers = await Promise.all(Array.from({ length: crowd }, () => create('crowd')));
      expect(answers.map(({ status }) => status)).toEqual(Array(crowd).fill(201));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      const replayed = answers.filter(({ headers }) => headers.has('Idempotent-Replayed'));
      // All but the first call, which on a busy machine is a repeat itself.
      expect([crowd - 1, crowd]).toContain(replayed.length);
      expect(await count()).toBe(1);
      await creator.expectTakenOnce?.();
    });
  });

  describe('of one account', () => {
    beforeAll(open);

    test.each(refused)('stays free after a refusal for %s', async (what, change, code) => {
      const key = `again: ${what}`;
      expectRefusal(await create(key, change), code);
      expectRefusal(await create(key, change), code);
      expect(await findRecord(creator, operation, key)).toBeNull();
      const good = await create(key);
      expect([good.status, readReplayed(good)]).toEqual([201, null]);
    });

    test.each([
      ['not sent', 'idempotency_key_required', []],
      ['empty', 'idempotency_key_required', ['']],
      ['only white space', 'idempotency_key_required', ['   ']],
      ['of 256 characters', 'idempotency_key_invalid', ['k'.repeat(256)]],
      ['with a character that is not ASCII', 'idempotency_key_invalid', ['caf\xe9']],
      ['with a tab inside', 'idempotency_key_invalid', ['a\tb']],
      ['sent twice', 'idempotency_key_invalid', ['a', 'b']],
      ['sent twice with one value', 'idempotency_key_invalid', ['a', 'a']],
      ['sent twice, empty', 'idempotency_key_invalid', ['', '']],
    ] as const)('that is %s is refused as %s', async (_, code, values) => {
      const before = await count();
      const answer = await exchange(service.url, {
        path,
        headers: [
          ['Authorization', `Bearer ${creator.key}`],
          ['Content-Type', 'application/json'],
          ...values.map((value): [string, string] => ['Idempotency-Key', value]),
        ],
        body: JSON.stringify(creator.body),
      });
      expectRefusal(answer, code);
      expect(await count()).toBe(before);
    });

    test.each([
      ['of 255 characters', 'k'.repeat(255)],
      ['of one character', 'k'],
      ['of every printable ASCII character', '!"#$%&\'()*+,-./09:;<=>?@AZ[\\]^_`az{|} ~'],
    ])('may be %s', async (_, value) => {
      const first = await create(value);
      expect(first.status).toBe(201);
      expect((await create(value)).text).toBe(first.text);
    });
  });
});

describe('the idempotency key of a payment', () => {
  const shop = useAccount(service);
  const create = (idempotencyKey: string, body: unknown = idealPayment(), as: Client = shop) =>
    as.post('/v1/payments', body, { idempotencyKey });
  const createRaw = (idempotencyKey: string, raw: string) =>
    shop.postRaw('/v1/payments', raw, { idempotencyKey });

  test('takes a body with another key order, white space and escapes for the same body', async () => {
    const body = idealPayment({ customer: { email: 'a@b.nl', first_name: 'Zoë' } });
    const first = await create('forms', body);
    const reversed = Object.fromEntries(Object.entries(body).reverse());
    const text = JSON.stringify(reversed, null, '\t').replace('Zoë', 'Zo\\u00eb');
    const again = await createRaw('forms', text);
    expect({ status: again.status, text: again.text }).toEqual({ status: 201, text: first.text });
    expect(again.headers.get('Idempotent-Replayed')).toBe('true');
  });

  test('takes another number in the metadata for another body, however large it is', async () => {
    const buildBody = (number: string) =>
      JSON.stringify(idealPayment({ metadata: 0 })).replace(
        '"metadata":0',
        `"metadata":{"n":${number}}`,
      );
    await createRaw('numbers', buildBody('12345678901234567890'));
    const other = await createRaw('numbers', buildBody('12345678901234567891'));
    expectRefusal(other, 'idempotency_key_reused');
  });

  test('belongs to one account and one environment', async () => {
    const first = await create('shared');
    const foreign = await create('shared', idealPayment({ amount: 5 }), await service.account());
    expect(foreign.status).toBe(201);
    expect(foreign.body.id).not.toBe(first.body.id);
    const live = await service.withKey(shop, true);
    // Without a live connector, only a shared key could answer with the sandbox payment.
    expectRefusal(await create('shared', idealPayment(), live), 'method_requirements_not_met');
    const second = await service.withKey(shop, false);
    expect((await create('shared', idealPayment(), second)).text).toBe(first.text);
  });

  test('creates one payment for fifty simultaneous calls with two bodies', async () => {
    const busy = await service.account();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        create('two', idealPayment({ amount: 1 + (i % 2) }), busy),
      ),
    );
    const created = answers.filter(({ status }) => status === 201);
    expect(created).toHaveLength(25);
    expect(new Set(created.map(({ body }) => body.amount)).size).toBe(1);
    for (const answer of answers.filter((each) => !created.includes(each))) {
      expectRefusal(answer, 'idempotency_key_reused');
    }
    expect(await busy.count('payments')).toBe(1);
  });

  test('is free again after 24 hours, also while its expired record is still stored', async () => {
    const first = await create('daily');
    const age = async (ms: number) => {
      const created_at = new Date(Date.now() - ms);
      const expires_at = new Date(created_at.getTime() + DAY_MS);
      // The database may have deleted the record by now; then nothing is left to change.
      const filter = { account_id: shop.account_id, key: 'daily' };
      await records().updateOne(filter, { $set: { created_at, expires_at } });
    };
    await age(DAY_MS - HOUR_MS);
    expect((await create('daily')).text).toBe(first.text);
    await age(DAY_MS + 1);
    const next = await create('daily', idealPayment({ reference: randomUUID() }));
    expect([next.status, readReplayed(next)]).toEqual([201, null]);
    expect(next.body.id).not.toBe(first.body.id);
    expectRefusal(await create('daily'), 'idempotency_key_reused');
  });

  test('keeps no request once it is answered, and expires 24 hours later', async () => {
    const began = Date.now();
    await create('stored');
    const elapsed = Date.now() - began;
    const record = await findRecord(shop, 'createPayment', 'stored');
    expect(record?.request).toBeNull();
    const lifetime = Number(record?.expires_at) - Number(record?.created_at);
    expect(lifetime).toBeGreaterThanOrEqual(DAY_MS);
    expect(lifetime).toBeLessThanOrEqual(DAY_MS + elapsed);
  });

  test('expires a day after its resource is written, however old the first call is', async () => {
    const { idempotency } = service.stores;
    const now = new Date();
    const resource_id = randomUUID();
    const { account_id } = shop;
    const key = { account_id, livemode: false, operation: 'createPayment', key: 'outage' };
    const facts = { fingerprint: 'f', resource_id, request_id: 'r' };
    await idempotency.reserveKey({ ...key, ...facts, request: { recipient: Object() } }, now);
    const created_at = new Date(now.getTime() - 2 * DAY_MS);
    await records().updateOne({ resource_id }, { $set: { created_at } });
    await idempotency.markWritten(resource_id);
    const soon = new Date(Date.now() + DAY_MS - HOUR_MS);
    expect(await idempotency.find(key, soon, 'hash')).toMatchObject({ resource_id });
    const later = new Date(Date.now() + DAY_MS + HOUR_MS);
    expect(await idempotency.find(key, later, 'hash')).toBeNull();
  });

  test('derives the payment link, which leads nowhere once the service has another link key', async () => {
    const { body } = await create('link');
    await service.withApp({}, async (url) => {
      const open = async () => (await fetch(body.redirect_url.replace(service.url, url))).status;
      expect(await open()).toBe(200);
      const { keys } = service;
      const { pay_token } = keys;
      keys.pay_token = randomBytes(32);
      expect(await open()).toBe(404);
      keys.pay_token = pay_token;
    });
  });
});

describe('the idempotency key of a refund', () => {
  const shop = useFreshFixture(() => service.account());
  let payment_id: string;
  beforeEach(async () => {
    payment_id = (await shop.settledPayment()).id;
  });

  const refund = (idempotencyKey: string, changes: object = {}) =>
    shop.post('/v1/refunds', { payment_id, amount: 100, ...changes }, { idempotencyKey });

  test('stays free when only the reservation of the money refuses the refund', async () => {
    // The balance is not read before the key is reserved.
    await fund(service, shop, -1_000);
    expectRefusal(await refund('again'), 'insufficient_balance');
    expect(await findRecord(shop, 'createRefund', 'again')).toBeNull();
    expectRefusal(await refund('again'), 'insufficient_balance');
    const less = await refund('again', { amount: 50 });
    expect([less.status, readReplayed(less)]).toEqual([201, null]);
    expect((await refund('again', { amount: 50 })).text).toBe(less.text);
    await fund(service, shop, 1_000);
    expectRefusal(await refund('again'), 'idempotency_key_reused');
    expect(await shop.count('refunds')).toBe(1);
  });

  test('is refused to every simultaneous caller, and creates the refund once there is money', async () => {
    await fund(service, shop, -1_000);
    const answers = await Promise.all(Array.from({ length: 20 }, () => refund('crowd')));
    for (const answer of answers) expectRefusal(answer, 'insufficient_balance');
    const record = await findRecord(shop, 'createRefund', 'crowd');
    expect([record, await shop.count('refunds')]).toEqual([null, 0]);
    await fund(service, shop, 1_000);
    expect((await refund('crowd')).status).toBe(201);
  });

  /** Makes a call as it is after its checks; the test decides how its resource is created. */
  const callOnce = async (
    idempotencyKey: string,
    { canonical = '{}', accepted_at = new Date().toISOString() },
    create: (resource_id: string) => Promise<CreatedResource>,
  ) => {
    const { stores, keys, connector } = service;
    const deps = { stores, keys, encrypter: createEncrypter(keys.seal), now: () => new Date() };
    const caller = { account_id: shop.account_id, livemode: false };
    const parseBody = () => null;
    const request = { caller, idempotencyKey, canonical, requestId: 'some-request', parseBody };
    const money = { amount: 100, currency: 'EUR', method: 'ideal' };
    const routing = { ...caller, ...money, payment_id, connector, accepted_at, due_seconds: 60 };
    return await createOnce(deps, request, {
      operation: 'createRefund',
      accept: () => ({ refund: { reason: null }, routing }),
      open: ({ record }) => create(record.resource_id),
    });
  };

  test('refuses joined callers of a refused first call without touching the next call', async () => {
    const reason = new Refusal('insufficient_balance', 'Too little.');
    const waiting: ((error: Refusal) => void)[] = [];
    const resources = new Set<string>();
    const wait = (id: string) => {
      resources.add(id);
      return new Promise<CreatedResource>((_, reject) => waiting.push(reject));
    };
    const outcomes = Promise.allSettled([
      callOnce('joined', {}, wait),
      callOnce('joined', {}, wait),
    ]);
    await eventually('both at the same record', async () => waiting.length === 2);
    expect(resources.size).toBe(1);
    // The workflow frees the key, then answers; between the two another call reserves it.
    for (const id of resources) await service.stores.idempotency.release(id);
    const other = { canonical: '{"amount":1}' };
    const next = await callOnce('joined', other, async () => ({ answer: { amount: 1 } }));
    for (const reject of waiting) reject(reason);
    expect(await outcomes).toEqual(Array(2).fill({ status: 'rejected', reason }));
    expect(next).toMatchObject({ body: '{"amount":1}', isReplayed: false });
    const record = await findRecord(shop, 'createRefund', 'joined');
    expect(resources).not.toContain(record?.resource_id);
    expect(record).toMatchObject({ status: 201, body: '{"amount":1}', request: null });
  });

  test('judges a repeat by the time of the first call, also after the refund window', async () => {
    const { canonical } = parseJson(JSON.stringify({ payment_id, amount: 100 }));
    const ago = (days: number, minutes: number) =>
      new Date(Date.now() - days * DAY_MS - minutes * 60_000).toISOString();
    const outage = new Refusal('temporarily_unavailable', 'Gone.');
    const first = { canonical, accepted_at: ago(0, 2) };
    await expect(callOnce('late', first, () => Promise.reject(outage))).rejects.toBe(outage);
    const payments = service.collection<{ _id: string }>('payments');
    await payments.updateOne({ _id: payment_id }, { $set: { settled_at: ago(365, 1) } });
    expectRefusal(await refund('fresh'), 'refund_window_expired');
    const repeat = await refund('late');
    expect([repeat.status, repeat.headers.get('Idempotent-Replayed')]).toEqual([201, 'true']);
  });

  test('starts a workflow whose input has money and routing, but not the reason', async () => {
    const before = new Date().toISOString();
    const { body } = await refund('input', { reason: 'Ada moved to 12 Long Lane.' });
    const { input, text } = await readPayloads(service.temporal, `refund:${body.id}`);
    expect(input).toEqual({
      refund_id: body.id,
      payment_id,
      account_id: shop.account_id,
      livemode: false,
      amount: 100,
      currency: 'EUR',
      method: 'ideal',
      connector: service.connector,
      accepted_at: expect.any(String),
      due_seconds: methodRules('ideal').refund_due_seconds,
      request_id: expect.any(String),
    });
    expect(input.accepted_at >= before && input.accepted_at <= body.created_at).toBe(true);
    expect(text).toContain(payment_id);
    expect(text).not.toContain('Long Lane');
  });
});

describe('the idempotency key of a payout', () => {
  const payer = useFreshShop(service);

  test('stays free when only the reservation of the money refuses the payout', async () => {
    const sales = { balance_account: 'sales' };
    // The check of the API sees a balance that is gone when the money is reserved.
    const rich = [{ ...sales, currency: 'EUR', available: 9_999, reserved: 0 }];
    const ledger = { ...service.stores.ledger, balances: async () => rich };
    await service.withApp({ stores: { ...service.stores, ledger } }, async (url) => {
      const pay = (amount: number) =>
        call(url, 'POST', '/v1/payouts', {
          key: payer.key,
          body: payer.ask({ metadata: sales, amount }),
          idempotencyKey: 'raced',
        });
      expectRefusal(await pay(1_000), 'balance_account_not_found');
      await credit(service, payer, { ...sales, amount: 999 });
      expectRefusal(await pay(1_000), 'insufficient_balance');
      const record = await findRecord(payer, 'createPayout', 'raced');
      expect([record, await payer.count('payouts')]).toEqual([null, 0]);
      const less = await pay(999);
      expect([less.status, readReplayed(less)]).toEqual([201, null]);
    });
    await payer.untilSent(sales);
    expect(await payer.balance(sales)).toEqual([0, 0]);
  });

  test('starts a workflow whose input has ids, money and routing, but no words of the merchant', async () => {
    await service.stores.accounts.setPayoutFee(payer.account_id, 'sepa_instant', 25);
    const words = { reference: 'Ada of Long Lane', metadata: { who: 'Ada of Long Lane' } };
    const { body } = await payer.pay(words);
    const { input, text } = await readPayloads(service.temporal, `payout:${body.id}`);
    expect(input).toEqual({
      payout_id: body.id,
      account_id: payer.account_id,
      livemode: false,
      amount: 1_000,
      fee: 25,
      currency: 'EUR',
      method: 'sepa_instant',
      recipient_id: payer.recipients.sepa_instant,
      balance_account: 'main',
      connector: service.connector,
      caller_waits: true,
      request_id: expect.any(String),
    });
    expect(text).toContain(payer.recipients.sepa_instant);
    // Three letters that may be within an encoded value.
    const name = /(?<![\w+/-])Ada(?![\w+/=-])/;
    for (const personal of ['Long Lane', name, 'Lovelace', 'DE89370400440532013000']) {
      expect(text).not.toMatch(personal);
    }
  });
});
