import type { EventType } from '../../src/domain/events/event';
import { eventually } from '../support/eventually';
import { buildEndpoint, buildPayment } from '../support/factories';
import type { Answer } from '../support/http';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

// Scopes, other accounts and wrong parameters: test/api/openapi.test.ts, test/api/lists.test.ts
/** Holds docs/api.md#disputes with the sandbox bank. */
const service = useService();
const shop = useAccount(service);

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

// What the bank answers, and what a dispute takes: test/workflows/dispute, test/domain/dispute.test.ts
test('evidence is sent once, within its bounds, and is erased when the bank decides', async () => {
  const { id, payment_id } = await openDispute();
  const send = (body: object) => shop.post(`/v1/disputes/${id}/evidence`, body);
  const explanation = 'x'.repeat(19_990);
  const long = { explanation, customer_reference: 'x'.repeat(11) };
  for (const body of [{}, { explanation: '' }, { carrier: 'PostNL', more: 1 }, long]) {
    expectRefusal(await send(body), 'invalid_request');
  }
  const most = { explanation, customer_reference: 'Rose Lane7' };
  const sent = (await send(most)).body;
  const answered = { status: 'under_review', evidence_submitted_at: expect.any(String) };
  expect(sent).toMatchObject(answered);
  expect((await send(most)).body).toEqual(sent);
  expectRefusal(await send({ explanation: 'Other' }), 'dispute_closed');
  await simulate(payment_id, { event: 'dispute_won', dispute_id: 'D1' });
  const won = { status: 'won', amount: 0, closed_at: expect.any(String) };
  expect(await readDispute(payment_id)).toMatchObject(won);
  expectRefusal(await shop.post(`/v1/disputes/${id}/accept`), 'dispute_closed');
  const stored = await service.stores.disputes.get(id);
  expect(JSON.stringify(stored)).not.toContain('Rose Lane');
  expect(stored?.evidence?.ciphertext).toBeNull();
});

test('evidence that the bank has refused is not sent again', async () => {
  const { id } = await openDispute();
  const send = () => shop.post(`/v1/disputes/${id}/evidence`, { explanation: 'Signed for.' });
  await send();
  const disputes = service.collection<{ _id: string }>('disputes');
  const refused = { evidence_submitted_at: null, answers_refused: ['evidence'] };
  await disputes.updateOne({ _id: id }, { $set: { ...refused, status: 'needs_response' } });
  expectRefusal(await send(), 'dispute_closed');
});

test('evidence is not stored while the dispute is being accepted', async () => {
  const { id } = await openDispute();
  const send = (explanation: string) => shop.post(`/v1/disputes/${id}/evidence`, { explanation });
  const disputes = service.collection<{ _id: string }>('disputes');
  const change = (answering: string | null) =>
    disputes.updateOne({ _id: id }, { $set: { answering } });
  await change('acceptance');
  expectRefusal(await send('While it is accepted.'), 'dispute_closed');
  await change(null);
  const { body } = await send('It arrived.');
  expect(body).toMatchObject({ status: 'under_review' });
});

test('an inquiry takes nothing until the bank withdraws the money, and one that is accepted is closed', async () => {
  const { id, payment_id, ...opened } = await openDispute({ amount: 0 });
  expect(opened).toMatchObject({ status: 'needs_response', amount: 0 });
  const report = (event: string, facts: object = {}) =>
    simulate(payment_id, { event, dispute_id: 'D1', ...facts });
  await report('dispute_withdrawn', { amount: 400 });
  expect(await readDispute(payment_id)).toMatchObject({ amount: 400 });
  const accept = async () => (await shop.post(`/v1/disputes/${id}/accept`)).body;
  const accepted = await accept();
  expect(accepted).toMatchObject({ status: 'accepted', closed_at: expect.any(String) });
  expect(await accept()).toEqual(accepted);
  const late = await shop.post(`/v1/disputes/${id}/evidence`, { explanation: 'Too late.' });
  expectRefusal(late, 'dispute_closed');
  expect(await service.stores.disputes.get(id)).not.toHaveProperty('evidence');
  await report('dispute_lost');
  expect(await readDispute(payment_id)).toMatchObject({ status: 'accepted', amount: 400 });
  expect((await shop.get(`/v1/payments/${payment_id}`)).body.disputed).toBe(400);
});

test('only an endpoint that names the events of disputes gets them', async () => {
  const enabled_events: EventType[] = ['dispute.opened', 'dispute.updated', 'dispute.closed'];
  const chosen = await buildEndpoint(shop, { url: 'http://127.0.0.1:9/chosen', enabled_events });
  const standard = await buildEndpoint(shop, { url: 'http://127.0.0.1:9/standard' });
  expect(standard.enabled_events).toHaveLength(19);
  const { id, payment_id } = await openDispute();
  await shop.post(`/v1/disputes/${id}/accept`);
  const list = async (resource_id: string): Promise<Answer['body'][]> =>
    (await shop.get(`/v1/events?resource_id=${resource_id}`)).body.data;
  const events = await eventually('both events', async () => {
    const rows = await list(id);
    return rows.length === 2 && rows;
  });
  expect(events.map(({ type }) => type)).toEqual(['dispute.closed', 'dispute.opened']);
  expect((await list(payment_id)).map(({ type }) => type)).toEqual(
    expect.arrayContaining(['dispute.closed', 'dispute.opened', 'payment.settled']),
  );
  for (const { data, deliveries } of events) {
    expect(data).toEqual({ dispute_id: id, payment_id });
    const find = (endpoint: string) =>
      deliveries.find((each: Answer['body']) => each.endpoint_id === endpoint)?.status;
    expect(find(standard.id)).toBe('not_subscribed');
    expect([undefined, 'not_subscribed']).not.toContain(find(chosen.id));
  }
});
