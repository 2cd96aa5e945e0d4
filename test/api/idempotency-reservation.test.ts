import { parseJson } from '../../src/base/json';
import { Refusal } from '../../src/domain/errors';
import { methodRules } from '../../src/domain/payment/catalog';
import { createEncrypter } from '../../src/encryption/encrypter';
import { type CreatedResource, createOnce } from '../../src/service/create-once';
import type { IdempotencyRecord } from '../../src/store/idempotency';
import { useFreshFixture } from '../support/fixture';
import { readPayloads } from '../support/histories';
import { eventually, readReplayed } from '../support/http';
import { useService } from '../support/service';
import { fund } from './fund';
import { credit, useFreshShop } from './payout-setting';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useFreshFixture(() => service.account());
let payment_id: string;

beforeEach(async () => {
  payment_id = (await shop.settledPayment()).id;
});

const refund = (idempotencyKey: string, changes: object = {}) =>
  shop.post('/v1/refunds', { payment_id, amount: 100, ...changes }, { idempotencyKey });
const claims = () => service.collection<IdempotencyRecord>('idempotency');
const claimOf = (
  key: string,
  { account_id }: { account_id: string } = shop,
  operation = 'createRefund',
) => claims().findOne({ account_id, operation, key });

describe('what only the reservation can refuse', () => {
  // The balance is not looked at before the claim is made.
  beforeEach(() => fund(service, shop, -1_000));

  test('burns no key either: it is free for another body, and for the same one', async () => {
    expectRefusal(await refund('again'), 'insufficient_balance');
    expect(await claimOf('again')).toBeNull();
    expectRefusal(await refund('again'), 'insufficient_balance');
    const less = await refund('again', { amount: 50 });
    expect([less.status, readReplayed(less)]).toEqual([201, null]);
    expect((await refund('again', { amount: 50 })).text).toBe(less.text);
    await fund(service, shop, 1_000);
    expectRefusal(await refund('again'), 'idempotency_key_reused');
    expect(await shop.count('refunds')).toBe(1);
  });

  test('is refused to every caller of the key, and then made under it', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => refund('crowd')));
    for (const answer of answers) expectRefusal(answer, 'insufficient_balance');
    expect([await claimOf('crowd'), await shop.count('refunds')]).toEqual([null, 0]);
    await fund(service, shop, 1_000);
    expect((await refund('crowd')).status).toBe(201);
  });
});

/** A call as it is after its checks; the test decides how its resource is created. */
const callOnce = async (
  idempotencyKey: string,
  { canonical = '{}', accepted_at = new Date().toISOString() },
  create: (resource_id: string) => Promise<CreatedResource>,
) => {
  const { stores, keys } = service;
  const deps = { stores, keys, encrypter: createEncrypter(keys.seal), now: () => new Date() };
  const caller = { account_id: shop.account_id, livemode: false };
  const parseBody = () => null;
  const request = { caller, idempotencyKey, canonical, requestId: 'some-request', parseBody };
  return await createOnce(deps, request, {
    operation: 'createRefund',
    accept: () => ({
      refund: { reason: null },
      routing: {
        payment_id,
        account_id: shop.account_id,
        livemode: false,
        amount: 100,
        currency: 'EUR',
        method: 'ideal',
        connector: service.connector,
        accepted_at,
        due_seconds: 60,
      },
    }),
    open: ({ record }) => create(record.resource_id),
  });
};

test('a caller who joined a claim that is then refused neither answers for it nor keeps it', async () => {
  const refused = new Refusal('insufficient_balance', 'Too little.');
  const waiting: ((error: Refusal) => void)[] = [];
  const resources = new Set<string>();
  const refuse = (id: string) => {
    resources.add(id);
    return new Promise<CreatedResource>((_, reject) => waiting.push(reject));
  };
  const calls = [callOnce('joined', {}, refuse), callOnce('joined', {}, refuse)];
  const outcomes = Promise.allSettled(calls);
  await eventually('both at the same claim', async () => waiting.length === 2);
  expect(resources.size).toBe(1);
  // The workflow frees the key, then answers; between the two another call takes it.
  for (const id of resources) await service.stores.idempotency.release(id);
  const other = { canonical: '{"amount":1}' };
  const next = await callOnce('joined', other, async () => ({ answer: { amount: 1 } }));
  for (const reject of waiting) reject(refused);
  expect(await outcomes).toEqual([
    { status: 'rejected', reason: refused },
    { status: 'rejected', reason: refused },
  ]);
  expect(next).toMatchObject({ body: '{"amount":1}', isReplayed: false });
  const claim = await claimOf('joined');
  expect(resources).not.toContain(claim?.resource_id);
  expect(claim).toMatchObject({ status: 201, body: '{"amount":1}', request: null });
});

test('a retry is judged by the time of the first call, also when the window has passed since', async () => {
  const { canonical } = parseJson(JSON.stringify({ payment_id, amount: 100 }));
  const ago = (days: number, minutes: number) =>
    new Date(Date.now() - (days * 24 * 60 + minutes) * 60_000).toISOString();
  const outage = new Refusal('temporarily_unavailable', 'Gone.');
  const first = callOnce('late', { canonical, accepted_at: ago(0, 2) }, () =>
    Promise.reject(outage),
  );
  await expect(first).rejects.toBe(outage);
  const payments = service.collection<{ _id: string }>('payments');
  await payments.updateOne({ _id: payment_id }, { $set: { settled_at: ago(365, 1) } });
  expectRefusal(await refund('fresh'), 'refund_window_expired');
  const retry = await refund('late');
  expect([retry.status, retry.headers.get('Idempotent-Replayed')]).toEqual([201, 'true']);
});

test('Temporal is told when the call was taken in, and never the reason', async () => {
  const before = new Date().toISOString();
  const { body } = await refund('told', { reason: 'Ada moved to 12 Long Lane.' });
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

describe('a key of a payout', () => {
  const payer = useFreshShop(service);

  test('is not burnt by what only the reservation could refuse', async () => {
    const { balances } = service.stores.ledger;
    // What the check before it saw was money that is gone by then.
    const rich = [{ balance_account: 'sales', currency: 'EUR', available: 9_999, reserved: 0 }];
    const seen = jest.spyOn(service.stores.ledger, 'balances').mockResolvedValueOnce(rich);
    const sales = { metadata: { balance_account: 'sales' } };
    expectRefusal(await payer.pay(sales, 'raced'), 'balance_account_not_found');
    await credit(service, payer, { balance_account: 'sales', amount: 999 });
    seen.mockResolvedValueOnce(rich);
    expectRefusal(await payer.pay(sales, 'raced'), 'insufficient_balance');
    seen.mockRestore();
    expect(service.stores.ledger.balances).toBe(balances);
    expect([await claimOf('raced', payer, 'createPayout'), await payer.count('payouts')]).toEqual([
      null,
      0,
    ]);
    const less = await payer.pay({ ...sales, amount: 999 }, 'raced');
    expect([less.status, readReplayed(less)]).toEqual([201, null]);
    await payer.untilSent({ balance_account: 'sales' });
    expect(await payer.balance({ balance_account: 'sales' })).toEqual([0, 0]);
  });

  test('leaves ids, money and routing in Temporal, and nothing that the merchant wrote', async () => {
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
