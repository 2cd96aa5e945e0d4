import { randomUUID } from 'node:crypto';
import { createTemporalClient } from '../../src/temporal/client';
import { everythingStored } from '../cli/cli';
import { gate } from '../support/gate';
import { call, eventually, idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';

const service = useService();
const shop = useAccount(service);

const simulate = (id: string, event: string) =>
  shop.post(`/v1/sandbox/payments/${id}/simulate`, { event });

test('a payment is created awaiting its customer, with every field of docs/api.md#create-a-payment', async () => {
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

test('a neighbor’s slow creates leave room for others', async () => {
  const neighbor = await service.account();
  const slow = gate();
  const { stores, queues, temporal: client } = service;
  const now = () => new Date();
  const engine = createTemporalClient({ client, stores, lifecycleQueue: queues.lifecycle, now });
  const openPayment: typeof engine.openPayment = async (input, memo) => {
    if (input.account_id === neighbor.account_id) await slow.opened;
    return await engine.openPayment(input, memo);
  };
  const changes = { config: { CREATES_AT_ONCE: 10 }, temporal: { ...engine, openPayment } };
  await service.withApp(changes, async (url) => {
    const refused: string[] = [];
    const create = async () => {
      const request = { key: neighbor.key, body: idealPayment(), idempotencyKey: randomUUID() };
      const { status, text } = await call(url, 'POST', '/v1/payments', { ...request, once: true });
      // A busy machine may answer later.
      if (text.includes('Nothing was done')) refused.push(text);
      else if (status === 503) return (await call(url, 'POST', '/v1/payments', request)).status;
      return status;
    };
    const creates = Array.from({ length: 12 }, create);
    await eventually('those without a slot', async () => refused.length === 4);
    for (const _ of [1, 2]) {
      const request = { key: shop.key, body: idealPayment() };
      expect((await call(url, 'POST', '/v1/payments', request)).status).toBe(201);
    }
    slow.release();
    const statuses = (await Promise.all(creates)).toSorted();
    expect(statuses).toEqual([...Array(8).fill(201), ...Array(4).fill(503)]);
  });
});

test('a payment is authorised and settled by callbacks', async () => {
  const { body } = await shop.post('/v1/payments', idealPayment());
  const authorized = await simulate(body.id, 'authorized');
  expect(authorized.body).toMatchObject({ status: 'authorized', settled_at: null });
  const settled = await simulate(body.id, 'settled');
  expect(settled.body).toMatchObject({
    status: 'settled',
    authorized_at: authorized.body.authorized_at,
    settled_at: expect.any(String),
  });
});

test('a settled callback without an authorised one authorises it at the same time', async () => {
  const { body } = await shop.post('/v1/payments', idealPayment());
  const settled = await simulate(body.id, 'settled');
  expect(settled.body.authorized_at).toBe(settled.body.settled_at);
});

test('cancelling before the customer pays gives cancelled; repeating it gives the same', async () => {
  const { body } = await shop.post('/v1/payments', idealPayment());
  const cancelled = await shop.post(`/v1/payments/${body.id}/cancel`);
  expect(cancelled.status).toBe(200);
  expect(cancelled.body).toMatchObject({
    status: 'cancelled',
    failure: { code: 'cancelled_by_merchant', message: expect.any(String) },
    cancelled_at: expect.any(String),
  });
  expect((await shop.post(`/v1/payments/${body.id}/cancel`, {})).body).toEqual(cancelled.body);
});

test('cancelling a payment whose workflow was terminated cancels it in a new run', async () => {
  const { body } = await shop.post('/v1/payments', idealPayment());
  await service.temporal.workflow.getHandle(`payment:${body.id}`).terminate('in a test');
  const cancelled = await shop.post(`/v1/payments/${body.id}/cancel`);
  expect(cancelled.status).toBe(200);
  expect(cancelled.body).toMatchObject({ status: 'cancelled' });
});

test('cancelling once the customer has paid is refused', async () => {
  const { body } = await shop.post('/v1/payments', idealPayment());
  await simulate(body.id, 'authorized');
  const refused = await shop.post(`/v1/payments/${body.id}/cancel`);
  expect(refused.status).toBe(422);
  expect(refused.body.error).toMatchObject({
    type: 'invalid_request_error',
    code: 'cannot_cancel',
  });
  await simulate(body.id, 'settled');
  expect((await shop.post(`/v1/payments/${body.id}/cancel`)).body.error.code).toBe('cannot_cancel');
});

test('a customer who authorises after the cancellation is voided, and operators see it', async () => {
  const { body } = await shop.post('/v1/payments', idealPayment());
  await shop.post(`/v1/payments/${body.id}/cancel`);
  expect((await simulate(body.id, 'authorized')).body.status).toBe('cancelled');
  await eventually('attention', async () => {
    const payment = await service.stores.payments.get(body.id);
    return payment?.attention === 'late_authorization_voided';
  });
});

test('who pays is shown wherever it was, and stands nowhere in clear', async () => {
  const customer = {
    email: 'quillfeather@example.com',
    first_name: 'Zebedee',
    last_name: 'Quillfeather',
    reference: 'c-77',
  };
  const asked = [idealPayment({ customer }), { idempotencyKey: 'zebedee' }] as const;
  const { body, text } = await shop.post('/v1/payments', ...asked);
  expect(body.customer).toEqual(customer);
  expect((await shop.post('/v1/payments', ...asked)).text).toBe(text);
  expect((await shop.get(`/v1/payments/${body.id}`)).body.customer).toEqual(customer);
  expect((await shop.get('/v1/payments?limit=1')).body.data[0].customer).toEqual(customer);
  expect((await service.stores.payments.get(body.id))?.customer).toEqual({
    reference: 'c-77',
    sealed: expect.stringMatching(/^ey/),
  });
  // An answer that was kept whole, as where the facts of the first one are not known.
  const claims = service.collection('idempotency');
  await claims.updateOne({ resource_id: body.id }, { $unset: { opening: '' } });
  expect((await shop.post('/v1/payments', ...asked)).text).toBe(text);
  const kept = await claims.findOne({ resource_id: body.id });
  expect(kept).toMatchObject({ status: 201, body: expect.stringMatching(/^ey/) });
  const again = await shop.post('/v1/payments', ...asked);
  expect([again.text, again.headers.get('Idempotent-Replayed')]).toEqual([text, 'true']);

  const stored = await everythingStored(service.db);
  const token = body.redirect_url.split('/').at(-1);
  expect(stored).toContain('c-77');
  for (const secret of [customer.email, 'Zebedee', 'Quillfeather', token]) {
    expect(stored).not.toContain(secret);
  }
});

test('the redirect URL opens the hosted page, and every read returns the same one', async () => {
  const { id, redirect_url } = (await shop.post('/v1/payments', idealPayment())).body;
  const page = await fetch(redirect_url);
  expect(page.status).toBe(200);
  expect(page.headers.get('Content-Type')).toContain('text/html');
  const read = await shop.get(`/v1/payments/${id}`);
  expect(read.body.redirect_url).toBe(redirect_url);
});
