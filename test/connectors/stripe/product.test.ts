import { randomUUID } from 'node:crypto';
import { buildAccount, buildPayment } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { createRandom } from '../../support/random';
import { useService } from '../../support/service';
import { postEvent, type Thing } from './fake';
import { startStripeWorld } from './product';

const DAY_MS = 86_400_000;
const prefix = `stripe-${randomUUID().slice(0, 8)}`;
// A product of its own: its payments go to Stripe.
const service = useService({
  live: { connectors: '', prefix },
  tests: 'stripe=visa|mastercard|ideal|multibanco',
});
// A refund of what is not available yet needs funds.
const account = useFixture(() => buildAccount(service, { funds: 100_000 }));

const world = useFixture(
  () => startStripeWorld({ service, prefix }),
  ({ stop }) => stop(),
);

const begin = async (fields: object = {}): Promise<string> =>
  (await buildPayment(account, { amount: 1_000, method: 'visa', ...fields })).id;
const becomes = (id: string, values: { status?: string; attention?: string }) =>
  service.becomes('payments', id, values);
const listCallbacks = async (id: string) =>
  (await service.stores.callbacks.forResource(id)).map(({ name }) => name).toSorted();

test('a payment is paid on the page, settled by its balance transaction, and refunded', async () => {
  const { bank } = world;
  const id = await begin();
  const charge = await bank.pay(id);
  await becomes(id, { status: 'settled' });
  const { bank_reference, attention } = (await service.stores.payments.get(id)) ?? {};
  expect({ bank_reference, attention }).toEqual({
    ...{ bank_reference: charge['balance_transaction'], attention: null },
  });
  const { body: refund } = await account.post('/v1/refunds', { payment_id: id, amount: 400 });
  const made = await eventually('a refund at Stripe', async () => bank.listRefunds(refund.id)[0]);
  await bank.settleRefund(made as Thing);
  await service.becomes('refunds', refund.id, { status: 'settled' });
  // It comes back weeks later.
  await bank.failRefund(made as Thing, 'expired_or_canceled_card');
  await service.becomes('refunds', refund.id, { attention: 'failed_after_settled' });
});

test('the fee of a balance transaction is what the merchant bears', async () => {
  const { account_id } = account;
  await service.stores.accounts.setAcquirerFee(account_id, 'merchant');
  const id = await begin();
  await world.bank.pay(id);
  await becomes(id, { status: 'settled' });
  const [entry] = await service.stores.ledger.forResource(id);
  // 1.5 % and 0.25.
  expect(Number(entry?.fee)).toBe(40);
  await service.stores.accounts.setAcquirerFee(account_id, 'service');
});

test('a settled payment is pending until the day that Stripe names, and pays no refund before', async () => {
  const { bank } = world;
  const shop = await service.account();
  const pay = async (daysAgo: number): Promise<string> => {
    const { id } = await buildPayment(shop, { amount: 1_000, method: 'visa' });
    bank.advance(-daysAgo * DAY_MS);
    await bank.pay(id);
    bank.advance(daysAgo * DAY_MS);
    await becomes(id, { status: 'settled' });
    return id;
  };
  const readMain = async () => (await shop.get('/v1/balances')).body.data[0];
  const refund = async (amount: number) =>
    (await shop.post('/v1/refunds', { payment_id, amount })).status;
  const payment_id = await pay(0);
  expect(await readMain()).toMatchObject({ available: 0, pending: 1_000 });
  expect(await refund(1)).toBe(422);
  await pay(5);
  expect(await readMain()).toMatchObject({ available: 1_000, pending: 1_000 });
  expect([await refund(700), await refund(301)]).toEqual([201, 422]);
  expect(await readMain()).toMatchObject({ available: 300, pending: 1_000 });
  const { body } = await shop.get('/v1/balance_transactions');
  const dates = body.data.map((row: { available_on: string }) => Date.parse(row.available_on));
  expect(dates.filter((at: number) => at > Date.now())).toHaveLength(1);
});

test('a payment by another brand is settled with an attention reason', async () => {
  const id = await begin({ method: 'visa' });
  await world.bank.pay(id, { details: { type: 'card', card: { brand: 'mastercard' } } });
  await becomes(id, { status: 'settled', attention: 'method_differs' });
});

test('a payment that is cancelled can no longer be paid, and late funds go back once', async () => {
  const { bank } = world;
  const id = await begin({ method: 'ideal' });
  const { status } = await account.post(`/v1/payments/${id}/cancel`);
  expect(status).toBe(200);
  await becomes(id, { status: 'cancelled' });
  expect(bank.findSession(id)['status']).toBe('expired');
  // As a bank might have had it under way.
  await bank.pay(id);
  const reversal = await eventually('a reversal at Stripe', async () => {
    return bank.listRefunds(`reversal:${id}`)[0];
  });
  await bank.settleRefund(reversal as Thing);
  await becomes(id, { status: 'cancelled', attention: 'late_settlement_reversed' });
  expect(bank.listRefunds(`reversal:${id}`)).toHaveLength(1);
});

test('a payment that its customer has paid is not cancelled, but settled', async () => {
  const { bank } = world;
  const id = await begin({ method: 'ideal' });
  await world.stopConnector();
  await bank.pay(id);
  await world.startConnector();
  await account.post(`/v1/payments/${id}/cancel`);
  await becomes(id, { status: 'settled' });
});

test('what happened while the connector was away is read, whatever webhooks got lost', async () => {
  const { bank } = world;
  const ids = [await begin(), await begin({ method: 'ideal' })];
  await world.stopConnector();
  for (const id of ids) await bank.pay(id);
  await world.startConnector();
  for (const id of ids) await becomes(id, { status: 'settled' });
});

test('events in any order, doubled and signed again report each fact once', async () => {
  const { bank, webhook } = world;
  const ids = await Promise.all(Array.from({ length: 5 }, () => begin()));
  for (const id of ids) await bank.pay(id);
  for (const id of ids) await becomes(id, { status: 'settled' });
  const before = await Promise.all(ids.map(listCallbacks));
  const random = createRandom(7);
  const events = bank.events
    .slice(0, 10)
    .map((event) => ({ event, order: random.integer(0, 1_000) }));
  const shuffled = events.toSorted((a, b) => a.order - b.order).map(({ event }) => event);
  for (const event of [...shuffled, ...shuffled]) {
    expect((await postEvent(event, webhook)).status).toBe(200);
  }
  const forged = { url: webhook.url, secret: 'whsec_of_somebody_else' };
  expect((await postEvent(shuffled[0] as Thing, forged)).status).toBe(400);
  expect(await Promise.all(ids.map(listCallbacks))).toEqual(before);
  expect(before).toEqual(ids.map(() => ['settled']));
  expect(await Promise.all(ids.map((id) => account.events(id)))).toEqual(
    ids.map(() => ['payment.awaiting_customer', 'payment.authorized', 'payment.settled']),
  );
});

test('a key of the other mode starts no connector', async () => {
  await expect(world.connect('sk_live_x')).rejects.toThrow('STRIPE_SECRET_KEY_FILE');
});
