import { randomBytes } from 'node:crypto';
import { createPaymentActivities } from '../../activities/payments';
import { createLogger } from '../../src/base/log';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { retryTransient } from '../support/eventually';
import { authorizedPayment, type PaymentFacts, useRecords } from '../support/records';

const records = useRecords();

const SECRETS: { sealed: never; active_from: string }[] = [];

async function addEndpoint({ account_id, livemode }: PaymentFacts, slot: number) {
  const endpoint_id = `we_${slot}`;
  const at = `2026-03-01T12:00:0${slot}.000Z`;
  await records.stores.endpoints.insert({
    ...{ account_id, livemode, endpoint_id, slot, position: at, url: 'https://shop.example/' },
    ...{ secrets: SECRETS, created_at: at, updated_at: at },
  });
}

test('a worker that dies between an event and its deliveries loses none', async () => {
  const payment = await authorizedPayment(records);
  for (const slot of [0, 1, 2]) await addEndpoint(payment, slot);
  const { mongo, stores, temporal } = records;
  const die = () => Promise.reject(new Error('killed'));
  const dying = createPaymentActivities({
    ...{ mongo, stores, log: createLogger('test', 'silent'), webhookQueue: 'unused' },
    temporal: Object.assign(Object.create(temporal), { workflow: { start: die } }),
    payTokenKey: randomBytes(32),
  });
  const { payment_id: resource_id, account_id, livemode, request_id } = payment;
  const move = {
    ...{ resource_id, account_id, livemode, request_id, change: {}, attention: null },
    ...{ at: new Date().toISOString(), to: ['settled' as const] },
    from: { status: 'authorized' as const, version: 3 },
  };
  await expect(retryTransient(() => dying.recordPaymentMove(move))).rejects.toThrow('killed');
  const [event] = await stores.events.list({ account_id, livemode, resource_id, limit: 1 });
  const id = event?._id ?? '';
  const pending = await stores.deliveries.pending(resource_id, account_id, livemode);
  expect(pending.sort((a, b) => (a._id < b._id ? -1 : 1))).toMatchObject([
    { _id: id, delivery: { endpoint_id: 'we_0' } },
    { _id: `${id}:we_1`, event_id: id, delivery: { endpoint_id: 'we_1' } },
    { _id: `${id}:we_2`, event_id: id, delivery: { endpoint_id: 'we_2' } },
  ]);
  await retryTransient(() => records.payments.recordPaymentMove(move));
  for (const delivery of [id, `${id}:we_1`, `${id}:we_2`]) {
    const handle = temporal.workflow.getHandle(webhookWorkflowId(delivery));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    await handle.terminate('end of test');
  }
});
