import type { EventType } from '../../src/domain/events/event';
import { buildEndpoint, buildPayment } from '../support/factories';
import { useHook } from '../support/hook';
import { eventually } from '../support/http';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

// Scopes, other accounts and wrong parameters: test/api/openapi.test.ts, test/api/lists.test.ts
/** Holds docs/api.md#disputes with the sandbox bank. */
const service = useService();
const shop = useAccount(service);
const hook = useHook(service);

const EVIDENCE = { explanation: 'Signed for at Rose Lane 7.', carrier: 'PostNL' };

const simulate = (payment_id: string, body: object) =>
  shop.post(`/v1/sandbox/payments/${payment_id}/simulate`, body);

/** Has a new payment of 1,050 disputed. */
async function openDispute(facts: object = {}) {
  const payment = await buildPayment(shop, { status: 'settled' });
  await simulate(payment.id, { event: 'dispute_opened', dispute_id: 'D1', ...facts });
  return await readDispute(payment.id);
}

async function readDispute(payment_id: string) {
  const { body } = await shop.get(`/v1/disputes?payment_id=${payment_id}`);
  return body.data[0];
}

test('a dispute is listed and read with what it took', async () => {
  const dispute = await openDispute({ amount: 400, fee: 15, code: '13.1' });
  expect(dispute).toEqual({
    id: expect.stringMatching(/^dp_[0-9a-f-]{36}$/),
    ...{ object: 'dispute', payment_id: expect.any(String), status: 'needs_response' },
    ...{ amount: 400, currency: 'EUR', fee: 15, reason: '13.1', livemode: false },
    evidence_due_at: expect.any(String),
    ...{ evidence_submitted_at: null, closed_at: null },
    ...{ created_at: expect.any(String), updated_at: expect.any(String) },
  });
  const path = `/v1/disputes/${dispute.id}`;
  expect((await shop.get(path)).body).toEqual(dispute);
  const upper = dispute.id.replace('dp_', '').toUpperCase();
  expect((await shop.get(`/v1/disputes/dp_${upper}`)).body).toEqual(dispute);
  const none = await shop.get('/v1/disputes?status=won');
  expect(none.body.data.map(({ id }: { id: string }) => id)).not.toContain(dispute.id);
});

test('evidence is sent once, and the bank then decides', async () => {
  const { id, payment_id } = await openDispute();
  const path = `/v1/disputes/${id}`;
  const sent = await shop.post(`${path}/evidence`, EVIDENCE);
  expect(sent.body).toMatchObject({
    status: 'under_review',
    evidence_submitted_at: expect.any(String),
  });
  expect((await shop.post(`${path}/evidence`, EVIDENCE)).body).toEqual(sent.body);
  expectRefusal(await shop.post(`${path}/evidence`, { explanation: 'Other' }), 'dispute_closed');
  await simulate(payment_id, { event: 'dispute_won', dispute_id: 'D1' });
  expect(await readDispute(payment_id)).toMatchObject({
    ...{ status: 'won', amount: 0, closed_at: expect.any(String) },
  });
  expectRefusal(await shop.post(`${path}/accept`), 'dispute_closed');
  const stored = await service.stores.disputes.get(id);
  expect(JSON.stringify(stored)).not.toContain('Rose Lane');
  expect(stored?.evidence?.ciphertext).toBeNull();
});

test('evidence that the bank has refused is not sent again', async () => {
  const { id } = await openDispute();
  const path = `/v1/disputes/${id}/evidence`;
  await shop.post(path, EVIDENCE);
  const { mongo, database } = service;
  const disputes = mongo.db(database).collection<{ _id: string }>('disputes');
  const refused = { evidence_submitted_at: null, answers_refused: ['evidence'] };
  await disputes.updateOne({ _id: id }, { $set: { ...refused, status: 'needs_response' } });
  expectRefusal(await shop.post(path, EVIDENCE), 'dispute_closed');
});

test('evidence has at most 20,000 characters in all, and no other field', async () => {
  const { id } = await openDispute();
  const path = `/v1/disputes/${id}/evidence`;
  const explanation = 'x'.repeat(19_990);
  const long = { explanation, customer_reference: 'x'.repeat(11) };
  for (const body of [{}, { explanation: '' }, { ...EVIDENCE, more: 1 }, long]) {
    expectRefusal(await shop.post(path, body), 'invalid_request');
  }
  const most = { explanation, customer_reference: 'x'.repeat(10) };
  expect((await shop.post(path, most)).status).toBe(200);
});

test('an accepted dispute is closed, also when the bank says that it is lost', async () => {
  const { id, payment_id } = await openDispute({ amount: 400 });
  const accepted = await shop.post(`/v1/disputes/${id}/accept`);
  expect(accepted.body).toMatchObject({ status: 'accepted', closed_at: expect.any(String) });
  expect((await shop.post(`/v1/disputes/${id}/accept`)).body).toEqual(accepted.body);
  await simulate(payment_id, { event: 'dispute_lost', dispute_id: 'D1' });
  expect(await readDispute(payment_id)).toMatchObject({ status: 'accepted', amount: 400 });
  const { body } = await shop.get(`/v1/payments/${payment_id}`);
  expect(body.disputed).toBe(400);
});

test('an inquiry takes nothing until the bank withdraws the money, and gives it back after the end', async () => {
  const dispute = await openDispute({ amount: 0 });
  expect(dispute).toMatchObject({ status: 'needs_response', amount: 0 });
  const of = { dispute_id: 'D1', amount: 1_050 };
  await simulate(dispute.payment_id, { event: 'dispute_withdrawn', ...of });
  expect(await readDispute(dispute.payment_id)).toMatchObject({ amount: 1_050 });
  await simulate(dispute.payment_id, { event: 'dispute_won', dispute_id: 'D1', amount: 0 });
  expect(await readDispute(dispute.payment_id)).toMatchObject({ status: 'won', amount: 1_050 });
  await simulate(dispute.payment_id, { event: 'dispute_reinstated', ...of });
  expect(await readDispute(dispute.payment_id)).toMatchObject({ status: 'won', amount: 0 });
});

test('only an endpoint that names the events of disputes gets them', async () => {
  const payment = await buildPayment(shop, { status: 'settled' });
  const enabled_events: EventType[] = ['dispute.opened', 'dispute.updated', 'dispute.closed'];
  const chosen = await buildEndpoint(shop, { url: `${hook.url}/chosen`, enabled_events });
  const standard = await buildEndpoint(shop, { url: `${hook.url}/standard` });
  expect(standard.enabled_events).toHaveLength(19);
  await simulate(payment.id, { event: 'dispute_opened', dispute_id: 'D1' });
  const { id } = await readDispute(payment.id);
  await shop.post(`/v1/disputes/${id}/accept`);
  const events = await eventually('the deliveries', async () => {
    const { body } = await shop.get(`/v1/events?resource_id=${id}`);
    const rows = body.data as { type: string; data: object; deliveries: { status: string }[] }[];
    return rows.length === 2 && rows;
  });
  expect(events.map(({ type }) => type)).toEqual(['dispute.closed', 'dispute.opened']);
  const ofPayment = (await shop.get(`/v1/events?resource_id=${payment.id}`)).body.data;
  expect(ofPayment.map(({ type }: { type: string }) => type)).toEqual(
    expect.arrayContaining(['dispute.closed', 'dispute.opened', 'payment.settled']),
  );
  for (const { data, deliveries } of events) {
    expect(data).toEqual({ dispute_id: id, payment_id: payment.id });
    const statuses = Object.fromEntries(
      deliveries.map((each) => [Reflect.get(each, 'endpoint_id'), each.status]),
    );
    expect(statuses[standard.id]).toBe('not_subscribed');
    expect(statuses[chosen.id]).not.toBe('not_subscribed');
  }
});
