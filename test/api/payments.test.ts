import { everythingStored } from '../cli/cli';
import { buildPayment } from '../support/factories';
import { idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useAccount(service);

const cancel = (id: string, body?: object) => shop.post(`/v1/payments/${id}/cancel`, body);
const simulate = async (id: string, event: string) =>
  (await shop.post(`/v1/sandbox/payments/${id}/simulate`, { event })).body;

test('a payment is created awaiting its customer, and a read shows the same', async () => {
  const { status, body } = await shop.post('/v1/payments', idealPayment({ metadata: { a: 1 } }));
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    object: 'payment',
    status: 'awaiting_customer',
    amount: 1050,
    currency: 'EUR',
    method: 'ideal',
    country: 'NL',
    reference: 'order-1001',
    redirect_url: expect.stringMatching(/^http:\/\/localhost:\d+\/pay\/[\w-]{43}$/),
    customer: { email: null, first_name: null, last_name: null, reference: null },
    failure: null,
    livemode: false,
    metadata: { a: 1 },
    authorized_at: null,
    settled_at: null,
    amount_settled: null,
    disputed: 0,
    cancelled_at: null,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  expect((await shop.get(`/v1/payments/${body.id}`)).body).toEqual(body);
});

test('a payment keeps the time of its authorization, which is that of the settlement by default', async () => {
  const { id } = await buildPayment(shop, { status: 'authorized' });
  const { authorized_at } = (await shop.get(`/v1/payments/${id}`)).body;
  const settled = await simulate(id, 'settled');
  expect(settled).toMatchObject({ status: 'settled', authorized_at });
  expect(settled.settled_at > authorized_at).toBe(true);
  const direct = await buildPayment(shop, { status: 'settled' });
  expect(direct.authorized_at).toBe(direct.settled_at);
});

test('a cancellation before the customer pays can be repeated', async () => {
  const { id } = await buildPayment(shop);
  const cancelled = await cancel(id);
  expect(cancelled.status).toBe(200);
  expect(cancelled.body).toMatchObject({
    status: 'cancelled',
    failure: { code: 'cancelled_by_merchant', message: expect.any(String) },
    cancelled_at: expect.any(String),
  });
  expect((await cancel(id, {})).body).toEqual(cancelled.body);
});

test('a cancellation starts the workflow again when it was terminated', async () => {
  const { id } = await buildPayment(shop);
  await service.temporal.workflow.getHandle(`payment:${id}`).terminate('in a test');
  const cancelled = await cancel(id);
  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled']);
});

test.each(['authorized', 'settled'] as const)(
  'a payment that is %s cannot be cancelled',
  async (status) => {
    const { id } = await buildPayment(shop, { status });
    expectRefusal(await cancel(id), 'cannot_cancel');
  },
);

test('an authorization after the cancellation is voided, and operators see it', async () => {
  const { id } = await buildPayment(shop, { status: 'cancelled' });
  expect((await simulate(id, 'authorized')).status).toBe('cancelled');
  await service.becomes('payments', id, { attention: 'late_authorization_voided' });
});

test('the customer is shown to the merchant, and never stored as plain text', async () => {
  const customer = {
    email: 'quillfeather@example.com',
    first_name: 'Zebedee',
    last_name: 'Quillfeather',
    reference: 'c-77',
  };
  const create = () =>
    shop.post('/v1/payments', idealPayment({ customer }), { idempotencyKey: 'zebedee' });
  const { body, text } = await create();
  expect(body.customer).toEqual(customer);
  expect((await create()).text).toBe(text);
  expect((await shop.get(`/v1/payments/${body.id}`)).body.customer).toEqual(customer);
  expect((await shop.get('/v1/payments?limit=1')).body.data[0].customer).toEqual(customer);
  expect((await service.stores.payments.get(body.id))?.customer).toEqual({
    reference: 'c-77',
    sealed: expect.stringMatching(/^ey/),
  });
  // A record without the facts of the first answer stores the whole answer.
  const records = service.collection('idempotency');
  await records.updateOne({ resource_id: body.id }, { $unset: { opening: '' } });
  expect((await create()).text).toBe(text);
  const stored = await records.findOne({ resource_id: body.id });
  expect(stored).toMatchObject({ status: 201, body: expect.stringMatching(/^ey/) });
  const again = await create();
  expect([again.text, again.headers.get('Idempotent-Replayed')]).toEqual([text, 'true']);

  const all = await everythingStored(service.db);
  const token = body.redirect_url.split('/').at(-1);
  expect(all).toContain('c-77');
  for (const secret of [customer.email, 'Zebedee', 'Quillfeather', token]) {
    expect(all).not.toContain(secret);
  }
});
