import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { findDeliveries, restart } from '../../src/service/orphans';
import { patientClient } from '../cli/resource-setting';
import { openInbox, useInbox } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { type Account, useService } from '../support/service';

const service = useService();
const inbox = useInbox();

const PATH = '/v1/webhook-endpoints';

async function create(shop: Account, body: Record<string, unknown>) {
  const { status, body: endpoint } = await shop.post(PATH, body);
  expect(status).toBe(201);
  return endpoint;
}

const change = (shop: Account, id: string, body: unknown) =>
  shop.send('PATCH', `${PATH}/${id}`, body);

interface Delivery {
  endpoint_id: string;
  status: string;
  attempts: number;
}

/** Deliveries of the event of a type, by endpoint. */
async function deliveriesOf(shop: Account, id: string, type: string): Promise<Delivery[]> {
  const { body } = await shop.get(`/v1/events?resource_id=${id}&type=${type}`);
  return body.data[0]?.deliveries ?? [];
}

async function expectDeliveries(
  shop: Account,
  id: string,
  type: string,
  expected: readonly (readonly [string, string])[],
): Promise<void> {
  let seen: unknown;
  await eventually(`the deliveries of ${type}`, async () => {
    seen = (await deliveriesOf(shop, id, type)).map((each) => [each.endpoint_id, each.status]);
    return JSON.stringify(seen) === JSON.stringify(expected);
  });
}

test('each endpoint gets the events that it wants, unless it is disabled or deleted', async () => {
  const shop = await service.account();
  const first = await create(shop, { url: `${inbox.url}/1` });
  const second = await create(shop, { url: `${inbox.url}/2`, enabled_events: ['payment.settled'] });
  const disabled = await create(shop, { url: `${inbox.url}/3` });
  const deleted = await create(shop, { url: `${inbox.url}/4` });
  await change(shop, disabled.id, { status: 'disabled' });
  const { id: before } = await shop.settledPayment();
  await expectDeliveries(shop, before, 'payment.settled', [
    [first.id, 'delivered'],
    [second.id, 'delivered'],
    [disabled.id, 'disabled'],
    [deleted.id, 'delivered'],
  ]);
  await expectDeliveries(shop, before, 'payment.authorized', [
    [first.id, 'delivered'],
    [second.id, 'not_subscribed'],
    [disabled.id, 'disabled'],
    [deleted.id, 'delivered'],
  ]);
  await shop.delete(`${PATH}/${deleted.id}`);
  await shop.delete(`${PATH}/${first.id}`);
  await change(shop, disabled.id, { status: 'enabled' });
  const { id: after } = await shop.settledPayment();
  await expectDeliveries(shop, after, 'payment.settled', [
    [second.id, 'delivered'],
    [disabled.id, 'delivered'],
  ]);
  // A deleted endpoint's rows stay.
  const [row] = await deliveriesOf(shop, before, 'payment.settled');
  expect(row).toMatchObject({ endpoint_id: first.id, status: 'delivered', attempts: 1 });
  const signatures = new Set(inbox.received.map(({ headers }) => headers['service-signature']));
  expect(signatures.size).toBe(inbox.received.length);
});

test('an endpoint that hangs or fails does not hold up another', async () => {
  const shop = await service.account();
  const slow = await openInbox();
  try {
    slow.answer.hold = new Promise(() => undefined);
    const hanging = await create(shop, { url: slow.url });
    const good = await create(shop, { url: inbox.url });
    const payment = (await shop.post('/v1/payments', idealPayment())).body;
    await expectDeliveries(shop, payment.id, 'payment.awaiting_customer', [
      [hanging.id, 'pending'],
      [good.id, 'delivered'],
    ]);
    // What waits for a disabled endpoint ends at its next attempt; a redelivery needs it enabled.
    await change(shop, hanging.id, { status: 'disabled' });
    const [event] = (await shop.get(`/v1/events?resource_id=${payment.id}`)).body.data;
    const path = `/v1/events/${event.id}/redeliver`;
    const again = await shop.post(path, undefined, { idempotencyKey: null });
    expect(again.status).toBe(202);
    await eventually('the second delivery', async () => {
      const rows = await deliveriesOf(shop, payment.id, 'payment.awaiting_customer');
      return rows[1]?.attempts === 2;
    });
  } finally {
    await slow.close();
  }
});

test('a delivery that lost its workflow is found and restarted, wherever it is stored', async () => {
  const shop = await service.account();
  // To the end: a second attempt that comes due on a busy machine must not end a delivery.
  inbox.answer.status = 500;
  const first = await create(shop, { url: `${inbox.url}/1` });
  const second = await create(shop, { url: `${inbox.url}/2` });
  const payment = (await shop.post('/v1/payments', idealPayment())).body;
  const type = 'payment.awaiting_customer';
  await eventually('both first attempts', async () => {
    const rows = await deliveriesOf(shop, payment.id, type);
    return rows.length === 2 && rows.every(({ attempts }) => attempts === 1);
  });
  const [event] = (await shop.get(`/v1/events?resource_id=${payment.id}`)).body.data;
  const handles = [event.id, `${event.id}:${second.id}`].map((id) =>
    service.temporal.workflow.getHandle(webhookWorkflowId(id)),
  );
  for (const handle of handles) await handle.terminate('lost');
  const { stores, queues } = service;
  const deps = {
    ...{ stores, lifecycleQueue: queues.lifecycle, webhookQueue: queues.webhooks },
    temporal: patientClient(service.temporal),
    now: () => new Date(Date.now() + 600_000),
  };
  const found: string[] = [];
  for await (const { orphans } of findDeliveries(deps)) {
    for (const orphan of orphans.filter((each) => each.event.account_id === shop.account_id)) {
      found.push(orphan.event._id);
      await restart(deps, orphan);
    }
  }
  expect(found.sort()).toEqual([event.id, `${event.id}:${second.id}`]);
  for (const handle of handles) {
    expect((await handle.describe()).status.name).toBe('RUNNING');
    await handle.terminate('end of test');
  }
  expect((await deliveriesOf(shop, payment.id, type)).map((each) => each.endpoint_id)).toEqual([
    first.id,
    second.id,
  ]);
});
