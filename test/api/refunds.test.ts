import { randomUUID } from 'node:crypto';
import { breakBook } from '../support/book';
import { buildAccount, buildPayment, buildRefund, fundAccount } from '../support/factories';
import type { Client } from '../support/http';
import { useAccount, useService } from '../support/service';
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

describe('a refund', () => {
  test('is created processing, and leaves its payment as it is', async () => {
    const payment = await buildSettled();
    const request = { payment_id: payment.id, amount: 50, reason: 'Zoë’s 鞋 <b>"too big"</b>\n👟' };
    const { status, body } = await refund(request);
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/),
      ...{ object: 'refund', ...request, currency: 'EUR', status: 'processing' },
      ...{ failure: null, settled_at: null, amount_settled: null },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    expect((await merchant.get(`/v1/refunds/${body.id}`)).body).toEqual(body);
    expect((await merchant.get(`/v1/payments/${payment.id}`)).body).toEqual(payment);
  });

  test.each([
    ['left out', {}],
    ['null', { amount: null, reason: null }],
  ])('whose amount is %s takes all that remains, and nothing is left', async (_, changes) => {
    const { id: payment_id } = await buildSettled();
    for (const amount of [1, 999]) await buildRefund(merchant, { payment_id, amount });
    const over = await refund({ payment_id, amount: 51 });
    expectRefusal(over, 'refund_amount_exceeds_balance');
    expect(over.body.error.message).toContain('€0.50');
    const rest = await refund({ payment_id, ...changes });
    expect(rest.body).toMatchObject({ amount: 50, reason: null });
    for (const more of [changes, { amount: 1 }]) {
      expectRefusal(await refund({ payment_id, ...more }), 'refund_amount_exceeds_balance');
    }
    expect(await readRefunded(payment_id)).toEqual([1_050, 3]);
  });

  test('that is settled has its time, and its amount stays refunded', async () => {
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

  test('that fails says why, gives its amount back, and can be made again', async () => {
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
    expectRefusal(await refund({ payment_id }), 'refund_amount_exceeds_balance');
    expect(await readAvailable()).toBe(before - 1_050);
  });

  test('whose entry the books refuse is a fault of the service, and can be made again', async () => {
    const account = await buildAccount(service, { funds: 10_000 });
    const { id: payment_id } = await buildPayment(account, { status: 'settled' });
    const correct = await breakBook(service.stores, `${account.account_id}:sandbox:EUR`);
    const body = { payment_id, amount: 50 };
    const idempotencyKey = randomUUID();
    const refused = await account.post('/v1/refunds', body, { idempotencyKey });
    expectRefusal(refused, 'books_refused');
    expect(refused.body.error.message).toContain('The books refuse refund_accepted: ');
    await correct();
    expect((await account.post('/v1/refunds', body, { idempotencyKey })).status).toBe(201);
    expect(await readRefunded(payment_id)).toEqual([50, 1]);
  });

  test('with wrong fields is refused, naming each', async () => {
    const answer = await refund({ payment_id: 5, amount: 1.5, reason: [], extra: 1 });
    expectRefusal(answer, 'invalid_request', ['payment_id', 'amount', 'reason', 'extra']);
    expectRefusal(await refund({ amount: 5 }), 'invalid_request', ['payment_id']);
  });

  test.each([
    ['an unsettled payment', { status: 'authorized' as const }, 'payment_not_settled'],
    [
      'a method without refunds',
      { status: 'settled' as const, method: 'paysafecard', country: 'AT' },
      'refund_not_supported',
    ],
  ] as const)('of %s is refused, and takes nothing', async (_, fields, code) => {
    const { id: payment_id } = await buildPayment(merchant, fields);
    for (const amount of [undefined, 1]) expectRefusal(await refund({ payment_id, amount }), code);
    expect(await readRefunded(payment_id)).toEqual([0, 0]);
  });

  test('of a live payment is paid from the live balance, and only by a live key', async () => {
    const shop = await service.account();
    const live = await service.withKey(shop, true);
    const { id: payment_id } = await shop.settledPayment();
    const payments = service.collection<{ _id: string }>('payments');
    await payments.updateOne({ _id: payment_id }, { $set: { livemode: true } });
    expectRefusal(await refund({ payment_id }, shop), 'payment_not_found');
    expectRefusal(await refund({ payment_id }, live), 'insufficient_balance');
    await fundAccount(service, shop, { amount: 1_050, livemode: true });
    const { status, body } = await refund({ payment_id }, live);
    expect(status).toBe(201);
    expect((await service.stores.refunds.get(body.id))?.livemode).toBe(true);
    expect((await shop.get('/v1/refunds')).body.data).toEqual([]);
  });
});
