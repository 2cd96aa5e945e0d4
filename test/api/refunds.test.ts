import { randomUUID } from 'node:crypto';
import { breakBook } from '../support/book';
import { buildAccount, buildPayment, buildRefund, fundAccount } from '../support/factories';
import type { Client } from '../support/http';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

const service = useService();
const merchant = useAccount(service);

const refund = (body: object, as: Client = merchant) => as.post('/v1/refunds', body);
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

// What is refused: test/domain/refund.test.ts. Its journal entries: test/workflows/refund.
describe('a refund', () => {
  test('is created processing, and leaves its payment as it is', async () => {
    const payment = await buildPayment(merchant, { status: 'settled' });
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

  test('without an amount takes all that remains, and settles', async () => {
    const { id: payment_id } = await buildPayment(merchant, { status: 'settled' });
    const before = await readAvailable();
    await buildRefund(merchant, { payment_id, amount: 50 });
    const over = await refund({ payment_id, amount: 1_001 });
    expectRefusal(over, 'refund_amount_exceeds_balance');
    expect(over.body.error.message).toContain('€10.00');
    const created = (await refund({ payment_id, amount: null, reason: null })).body;
    expect(created).toMatchObject({ amount: 1_000, reason: null });
    expect([await readAvailable(), ...(await readRefunded(payment_id))]).toEqual([
      ...[before - 1_050, 1_050, 2],
    ]);
    const settled = await simulate(created.id, { event: 'settled' });
    const changes = { settled_at: expect.any(String), amount_settled: 1_000 };
    expect(settled).toEqual({ ...created, status: 'settled', ...changes });
    expect(settled.settled_at >= created.created_at).toBe(true);
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
