import { type Client, idealPayment } from '../support/http';
import { REFUNDS } from '../support/promises';
import { useAccount, useService } from '../support/service';
import { fund } from './fund';
import { expectRefusal } from './refusal';

const service = useService();
const merchant = useAccount(service);

const refund = (body: object, as: Client = merchant) => as.post('/v1/refunds', body);
const settled = (changes: Record<string, unknown> = {}) => merchant.settledPayment(changes);
/** Amount that the payment's refunds hold of it; minor units. */
const refundedOf = async (id: string) => (await service.stores.payments.get(id))?.refunded;
const simulate = (id: string, body: object) =>
  merchant.post(`/v1/sandbox/refunds/${id}/simulate`, body);
/** Minor units on `main`. */
const available = async () => {
  const rows = await service.stores.ledger.balances(merchant.account_id, false);
  return rows.find(({ balance_account }) => balance_account === 'main')?.available;
};
const refundsOf = (payment_id: string) =>
  service.collection('refunds').countDocuments({ payment_id });

test('a refund is created processing, with exactly the fields of docs/api.md#refunds', async () => {
  const payment = await settled();
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
])('with the amount %s it is all that remains', async (_, changes) => {
  const { id: payment_id } = await settled();
  expect((await refund({ payment_id, ...changes })).body).toMatchObject({
    amount: 1_050,
    reason: null,
  });
  const partly = (await settled()).id;
  await refund({ payment_id: partly, amount: 1_049 });
  expect((await refund({ payment_id: partly, ...changes })).body.amount).toBe(1);
  expectRefusal(await refund({ payment_id: partly, ...changes }), 'refund_amount_exceeds_balance');
});

test('partial refunds go on until the payment is exhausted, to the last minor unit', async () => {
  const { id: payment_id } = await settled();
  for (const amount of [1, 500, 548]) {
    expect((await refund({ payment_id, amount })).status).toBe(201);
  }
  const over = await refund({ payment_id, amount: 2 });
  expectRefusal(over, 'refund_amount_exceeds_balance');
  expect(over.body.error.message).toContain('€0.01');
  expect((await refund({ payment_id, amount: 1 })).status).toBe(201);
  expectRefusal(await refund({ payment_id, amount: 1 }), 'refund_amount_exceeds_balance');
  expect(await refundedOf(payment_id)).toBe(1_050);
  expect(await refundsOf(payment_id)).toBe(4);
});

test('refunds at the same time never exceed the payment', async () => {
  const { id: payment_id } = await settled();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => refund({ payment_id, amount: 100 })),
  );
  const made = answers.filter(({ status }) => status === 201);
  expect(made).toHaveLength(10);
  for (const answer of answers.filter((each) => !made.includes(each))) {
    expectRefusal(answer, 'refund_amount_exceeds_balance');
  }
  expect(await refundedOf(payment_id)).toBe(1_000);
});

test('a settled refund has its time, and what was refunded stays refunded', async () => {
  const { id: payment_id } = await settled();
  const created = (await refund({ payment_id })).body;
  const before = await available();
  const { body } = await simulate(created.id, { event: 'settled' });
  const moved = { settled_at: expect.any(String), amount_settled: created.amount };
  expect(body).toEqual({ ...created, status: 'settled', ...moved });
  expect(body.settled_at >= created.created_at).toBe(true);
  expectRefusal(await refund({ payment_id, amount: 1 }), 'refund_amount_exceeds_balance');
  expect(await available()).toBe(before);
});

test('a failed refund says why, gives its amount back, and can be made again', async () => {
  const { id: payment_id } = await settled();
  const before = await available();
  await refund({ payment_id, amount: 50 });
  const created = (await refund({ payment_id })).body;
  expect(created.amount).toBe(1_000);
  expect(await available()).toBe(Number(before) - 1_050);
  expectRefusal(await refund({ payment_id, amount: 1 }), 'refund_amount_exceeds_balance');
  const failure = { code: 'account_closed', message: 'The account is closed.' };
  const { body } = await simulate(created.id, {
    event: 'failed',
    code: failure.code,
    reason: failure.message,
  });
  expect(body).toEqual({ ...created, status: 'failed', failure });
  expect(await available()).toBe(Number(before) - 50);
  const again = await refund({ payment_id });
  expect(again.body).toMatchObject({ status: 'processing', amount: 1_000, failure: null });
  expect((await simulate(again.body.id, { event: 'settled' })).body.status).toBe('settled');
  expectRefusal(await refund({ payment_id }), 'refund_amount_exceeds_balance');
  expect(await available()).toBe(Number(before) - 1_050);
});

test('an amount in yen has no decimals, also in the words of a refusal', async () => {
  const yen = { method: 'visa', currency: 'JPY', amount: 500 };
  const { id: payment_id } = await settled(yen);
  expect((await refund({ payment_id, amount: 1 })).body).toMatchObject({
    amount: 1,
    currency: 'JPY',
  });
  const over = await refund({ payment_id, amount: 500 });
  expectRefusal(over, 'refund_amount_exceeds_balance');
  expect(over.body.error.message).toContain('¥499 of the payment');
});

test('a reason of 500 characters is returned unchanged; one of 501 is refused', async () => {
  const { id: payment_id } = await settled();
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
  ['a payment of another type', { payment_id: { $ne: null } }, ['payment_id']],
  ['an id of endless length', { payment_id: 'x'.repeat(101) }, ['payment_id']],
  ['several faults', { payment_id: 5, amount: 1.5, extra: 1 }, ['payment_id', 'amount', 'extra']],
])('%s is refused, naming each field at fault', async (_, body, fields) => {
  expectRefusal(await refund(body), 'invalid_request', fields);
});

test.each(['authorized', 'failed', 'expired', 'cancelled'])(
  'a payment that is %s is not refunded',
  async (to) => {
    const { body } = await merchant.post('/v1/payments', idealPayment());
    expectRefusal(await refund({ payment_id: body.id }), 'payment_not_settled');
    if (to === 'cancelled') await merchant.post(`/v1/payments/${body.id}/cancel`);
    else await merchant.post(`/v1/sandbox/payments/${body.id}/simulate`, { event: to });
    for (const amount of [undefined, 1, 5_000]) {
      const answer = await refund({ payment_id: body.id, amount });
      expectRefusal(answer, 'payment_not_settled');
      expect(answer.body.error.message).toContain(`The payment is ${to}`);
    }
  },
);

const IN_POLAND = { method: 'przelewy24', country: 'PL', customer: { email: 'jan@example.com' } };
const IN_PORTUGAL = { country: 'PT', customer: { email: 'ana@example.com' } };

test.each([
  ['multibanco', { method: 'multibanco', ...IN_PORTUGAL }],
  ['paysafecard', { method: 'paysafecard', country: 'AT' }],
])('%s has no refunds', async (_, changes) => {
  const { id: payment_id } = await settled(changes);
  for (const amount of [undefined, 1, 5_000]) {
    expectRefusal(await refund({ payment_id, amount }), 'refund_not_supported');
  }
  expect(await refundsOf(payment_id)).toBe(0);
});

test.each([
  ['ideal', REFUNDS.ideal, {}],
  ['mbway', REFUNDS.mbway, { method: 'mbway', country: 'PT' }],
  ['przelewy24', REFUNDS.przelewy24, IN_POLAND],
  ['visa', REFUNDS.visa, { method: 'visa' }],
])(
  '%s can be refunded within its window from the settlement, and no longer: %o',
  async (_, { withinDays }, changes) => {
    const { id: payment_id } = await settled(changes);
    const settleAgo = async (ms: number) => {
      const settled_at = new Date(Date.now() - ms).toISOString();
      const payments = service.collection<{ _id: string }>('payments');
      await payments.updateOne({ _id: payment_id }, { $set: { settled_at } });
    };
    const window = withinDays * 24 * 60 * 60 * 1_000;
    await settleAgo(window + 600_000);
    const late = await refund({ payment_id, amount: 1 });
    expectRefusal(late, 'refund_window_expired');
    expect(late.body.error.message).toContain(`${withinDays} days`);
    await settleAgo(window - 600_000);
    expect((await refund({ payment_id, amount: 1 })).status).toBe(201);
  },
);

test('what the balance does not hold is not refunded, and nothing is taken', async () => {
  const shop = await service.account();
  const { id: payment_id } = await shop.settledPayment();
  await fund(service, shop, -50);
  expectRefusal(await refund({ payment_id }, shop), 'insufficient_balance');
  expectRefusal(await refund({ payment_id, amount: 1_001 }, shop), 'insufficient_balance');
  expect([await refundedOf(payment_id), await refundsOf(payment_id)]).toEqual([0, 0]);
  expect((await refund({ payment_id, amount: 1_000 }, shop)).status).toBe(201);
});

test('the id of a refund is none of a payment, nor the other way round', async () => {
  const { id: payment_id } = await settled();
  const { id } = (await refund({ payment_id, amount: 1 })).body;
  expectRefusal(await refund({ payment_id: id }), 'payment_not_found');
  expectRefusal(await merchant.get(`/v1/refunds/${payment_id}`), 'refund_not_found');
  expect(await refundsOf(payment_id)).toBe(1);
});

test('a live payment is refunded from the live balance, by a live key only', async () => {
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
