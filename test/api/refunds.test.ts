import { buildPayment, buildRefund } from '../support/factories';
import type { Client } from '../support/http';
import { useAccount, useService } from '../support/service';
import { fund } from './fund';
import { expectRefusal } from './refusal';

const service = useService();
const merchant = useAccount(service);

const refund = (body: object, as: Client = merchant) => as.post('/v1/refunds', body);
const buildSettled = (fields: object = {}) =>
  buildPayment(merchant, { ...fields, status: 'settled' });
/** Reads the minor units that refunds have taken from a payment, and counts the refunds. */
const readRefunded = async (payment_id: string) => [
  (await service.stores.payments.get(payment_id))?.refunded,
  await service.collection('refunds').countDocuments({ payment_id }),
];
const simulate = async (id: string, body: object) =>
  (await merchant.post(`/v1/sandbox/refunds/${id}/simulate`, body)).body;
const readAvailable = async () => {
  const rows = await service.stores.ledger.balances(merchant.account_id, false);
  return Number(rows.find(({ balance_account }) => balance_account === 'main')?.available);
};

test('a refund is created processing, and leaves its payment as it is', async () => {
  const payment = await buildSettled();
  const { status, body } = await refund({ payment_id: payment.id, amount: 50, reason: 'Too big.' });
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/),
    object: 'refund',
    payment_id: payment.id,
    amount: 50,
    currency: 'EUR',
    status: 'processing',
    reason: 'Too big.',
    failure: null,
    settled_at: null,
    amount_settled: null,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
  expect((await merchant.get(`/v1/refunds/${body.id}`)).body).toEqual(body);
  expect((await merchant.get(`/v1/payments/${payment.id}`)).body).toEqual(payment);
});

test.each([
  ['left out', {}],
  ['null', { amount: null, reason: null }],
])('a refund whose amount is %s takes all that remains', async (_, changes) => {
  const { id: payment_id } = await buildSettled();
  await refund({ payment_id, amount: 1_000 });
  const rest = await refund({ payment_id, ...changes });
  expect(rest.body).toMatchObject({ amount: 50, reason: null });
  expectRefusal(await refund({ payment_id, ...changes }), 'refund_amount_exceeds_balance');
});

test('partial refunds end with the last minor unit of the payment', async () => {
  const { id: payment_id } = await buildSettled();
  for (const amount of [1, 500, 548]) await buildRefund(merchant, { payment_id, amount });
  const over = await refund({ payment_id, amount: 2 });
  expectRefusal(over, 'refund_amount_exceeds_balance');
  expect(over.body.error.message).toContain('€0.01');
  await buildRefund(merchant, { payment_id, amount: 1 });
  expectRefusal(await refund({ payment_id, amount: 1 }), 'refund_amount_exceeds_balance');
  expect(await readRefunded(payment_id)).toEqual([1_050, 4]);
});

test('simultaneous refunds never exceed the payment', async () => {
  const { id: payment_id } = await buildSettled();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => refund({ payment_id, amount: 100 })),
  );
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused).toHaveLength(10);
  for (const answer of refused) expectRefusal(answer, 'refund_amount_exceeds_balance');
  expect(await readRefunded(payment_id)).toEqual([1_000, 10]);
});

test('a settled refund has its time, and its amount stays refunded', async () => {
  const { id: payment_id } = await buildSettled();
  const created = (await refund({ payment_id })).body;
  const before = await readAvailable();
  const settled = await simulate(created.id, { event: 'settled' });
  const changes = { settled_at: expect.any(String), amount_settled: created.amount };
  expect(settled).toEqual({ ...created, status: 'settled', ...changes });
  expect(settled.settled_at >= created.created_at).toBe(true);
  expectRefusal(await refund({ payment_id, amount: 1 }), 'refund_amount_exceeds_balance');
  expect(await readAvailable()).toBe(before);
});

test('a failed refund says why, gives its amount back, and can be made again', async () => {
  const { id: payment_id } = await buildSettled();
  const before = await readAvailable();
  await refund({ payment_id, amount: 50 });
  const created = (await refund({ payment_id })).body;
  expect(await readAvailable()).toBe(before - 1_050);
  const failure = { code: 'account_closed', message: 'The account is closed.' };
  const { code, message: reason } = failure;
  const failed = await simulate(created.id, { event: 'failed', code, reason });
  expect(failed).toEqual({ ...created, status: 'failed', failure });
  expect(await readAvailable()).toBe(before - 50);
  const again = await refund({ payment_id });
  expect(again.body).toMatchObject({ status: 'processing', amount: 1_000, failure: null });
  expect((await simulate(again.body.id, { event: 'settled' })).status).toBe('settled');
  expectRefusal(await refund({ payment_id }), 'refund_amount_exceeds_balance');
  expect(await readAvailable()).toBe(before - 1_050);
});

test('a refund in yen has no decimals, also in the words of a refusal', async () => {
  const yen = { method: 'visa', currency: 'JPY', amount: 500 };
  const { id: payment_id } = await buildSettled(yen);
  const { body } = await refund({ payment_id, amount: 1 });
  expect(body).toMatchObject({ amount: 1, currency: 'JPY' });
  const over = await refund({ payment_id, amount: 500 });
  expect(over.body.error.message).toContain('¥499 of the payment');
});

test('a reason of 500 characters comes back unchanged, and one of 501 is refused', async () => {
  const { id: payment_id } = await buildSettled();
  for (const reason of ['x'.repeat(500), 'Zoë’s 鞋 <b>"too big"</b>\n👟', '']) {
    const { status, body } = await refund({ payment_id, amount: 1, reason });
    expect([status, body.reason]).toEqual([201, reason]);
    expect((await merchant.get(`/v1/refunds/${body.id}`)).body.reason).toBe(reason);
  }
  for (const reason of ['x'.repeat(501), 'a\0b', 5, [], {}, true]) {
    expectRefusal(await refund({ payment_id, amount: 1, reason }), 'invalid_request', ['reason']);
  }
});

test.each([
  ['an unknown field', { payment_id: 'some-id', currency: 'EUR' }, ['currency']],
  ['a field of the answer', { payment_id: 'some-id', status: 'settled' }, ['status']],
  ['no payment', { amount: 5 }, ['payment_id']],
  ['a payment that is null', { payment_id: null }, ['payment_id']],
  ['a payment that is no text', { payment_id: { $ne: null } }, ['payment_id']],
  ['an id of 101 characters', { payment_id: 'x'.repeat(101) }, ['payment_id']],
  ['several faults', { payment_id: 5, amount: 1.5, extra: 1 }, ['payment_id', 'amount', 'extra']],
])('a refund with %s is refused, naming each field', async (_, body, fields) => {
  expectRefusal(await refund(body), 'invalid_request', fields);
});

test.each([
  ['an unsettled payment', { status: 'authorized' as const }, 'payment_not_settled'],
  [
    'a method without refunds',
    { status: 'settled' as const, method: 'paysafecard', country: 'AT' },
    'refund_not_supported',
  ],
] as const)('a refund of %s is refused, and takes nothing', async (_, fields, code) => {
  const { id: payment_id } = await buildPayment(merchant, fields);
  for (const amount of [undefined, 1, 5_000]) {
    expectRefusal(await refund({ payment_id, amount }), code);
  }
  expect(await readRefunded(payment_id)).toEqual([0, 0]);
});

test('a refund after the window of its method is refused', async () => {
  const { id: payment_id } = await buildSettled();
  const settleAgo = async (days: number, minutes: number) => {
    const ago = (days * 24 * 60 + minutes) * 60_000;
    const settled_at = new Date(Date.now() - ago).toISOString();
    const payments = service.collection<{ _id: string }>('payments');
    await payments.updateOne({ _id: payment_id }, { $set: { settled_at } });
  };
  await settleAgo(365, 10);
  const late = await refund({ payment_id, amount: 1 });
  expectRefusal(late, 'refund_window_expired');
  expect(late.body.error.message).toContain('365 days');
  await settleAgo(365, -10);
  expect((await refund({ payment_id, amount: 1 })).status).toBe(201);
});

test('a refund of more than the balance is refused, and takes nothing', async () => {
  const shop = await service.account();
  const { id: payment_id } = await shop.settledPayment();
  await fund(service, shop, -50);
  expectRefusal(await refund({ payment_id }, shop), 'insufficient_balance');
  expectRefusal(await refund({ payment_id, amount: 1_001 }, shop), 'insufficient_balance');
  expect(await readRefunded(payment_id)).toEqual([0, 0]);
  expect((await refund({ payment_id, amount: 1_000 }, shop)).status).toBe(201);
});

test('the ids of payments and refunds are not interchangeable', async () => {
  const { id: payment_id } = await buildSettled();
  const { id } = await buildRefund(merchant, { payment_id, amount: 1 });
  expectRefusal(await refund({ payment_id: id }), 'payment_not_found');
  expectRefusal(await merchant.get(`/v1/refunds/${payment_id}`), 'refund_not_found');
});

test('a live payment is refunded from the live balance, and only by a live key', async () => {
  const shop = await service.account();
  const live = await service.withKey(shop, true);
  const { id: payment_id } = await shop.settledPayment();
  const payments = service.collection<{ _id: string }>('payments');
  await payments.updateOne({ _id: payment_id }, { $set: { livemode: true } });
  expectRefusal(await refund({ payment_id }, shop), 'payment_not_found');
  expectRefusal(await refund({ payment_id }, live), 'insufficient_balance');
  await fund(service, { ...shop, livemode: true }, 1_050);
  const { status, body } = await refund({ payment_id }, live);
  expect(status).toBe(201);
  expect((await service.stores.refunds.get(body.id))?.livemode).toBe(true);
  expect((await shop.get('/v1/refunds')).body.data).toEqual([]);
});
