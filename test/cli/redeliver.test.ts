import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { redeliverEvent } from '../../src/service/events/redeliver';
import type { EventDocument } from '../../src/store/events';
import { eventually } from '../support/http';
import { openAccount } from '../support/service';
import { commandsIn, run } from './cli';
import { useDeliverySetting } from './delivery-setting';
import { recordEvents, registerEndpoint } from './event-log';

const setting = useDeliverySetting();

/** An event whose first delivery has long ended, as the server has forgotten it. */
const exhaustedEvent = (): Promise<EventDocument> =>
  setting.event({ status: 'exhausted', attempts: 12, next_attempt_at: null });

test('a redelivery posts the same bytes again under the next run number, as often as asked', async () => {
  const event = await exhaustedEvent();
  const { stores } = setting.deps;
  const redeliver = () => redeliverEvent(setting.deps, event._id);
  await setting.working(async () => {
    expect((await redeliver())[0]?.delivery).toMatchObject({ status: 'pending', run: 1 });
    expect(await setting.handleOf(event).result()).toEqual({ outcome: 'delivered' });
    await redeliver();
    await setting.handleOf(event).result();
  });
  expect(setting.bodies()).toEqual([event.body, event.body]);
  expect(await setting.deliveryOf(event)).toMatchObject({ status: 'delivered', run: 2 });
  const rows = await stores.deliveries.forEvent(event._id);
  expect(rows.map(({ run: number, attempt }) => [number, attempt])).toEqual([
    [2, 1],
    [1, 1],
  ]);
});

test('one that waits for its next attempt is sent at once, in its place', async () => {
  const event = await exhaustedEvent();
  setting.inbox.answer.status = 500;
  await setting.working(async () => {
    await redeliverEvent(setting.deps, event._id);
    const first = (await setting.handleOf(event).describe()).runId;
    await eventually('the failure', async () => {
      return (await setting.deliveryOf(event))?.attempts === 13;
    });
    setting.inbox.answer.status = 200;
    const [again] = await redeliverEvent(setting.deps, event._id);
    expect(again?.delivery).toMatchObject({ run: 2 });
    expect(await setting.handleOf(event).result()).toEqual({ outcome: 'delivered' });
    const ended = setting.temporal.workflow.getHandle(webhookWorkflowId(event._id), first);
    expect((await ended.describe()).status.name).toBe('TERMINATED');
  });
  expect(setting.bodies()).toEqual([event.body, event.body]);
  expect(await setting.deliveryOf(event)).toEqual({
    status: 'delivered',
    attempts: 14,
    next_attempt_at: null,
    run: 2,
  });
});

test('of several asked for at once one ends up running: that which the event names', async () => {
  const event = await exhaustedEvent();
  const runs = await Promise.all(
    Array.from({ length: 5 }, () => setting.service.cli('event', 'redeliver', event._id, '--json')),
  );
  const refused = runs.filter(({ exit }) => exit !== 0);
  expect(refused.length).toBeLessThan(5);
  for (const { stderr } of refused) expect(stderr).toContain('"code":"delivery_running"');
  expect((await setting.handleOf(event).describe()).status.name).toBe('RUNNING');
  const { run: number } = await setting.inputOf(event);
  expect(await setting.deliveryOf(event)).toMatchObject({ status: 'pending', run: number });
  await setting.handleOf(event).terminate('end of test');
});

test('one that starts after a later one gives way to it', async () => {
  const event = await exhaustedEvent();
  const { stores } = setting.deps;
  const claimRun: typeof stores.deliveries.reserveRun = async (...claim) => {
    const claimed = await stores.deliveries.reserveRun(...claim);
    const [later] = await redeliverEvent(setting.deps, event._id);
    expect(later?.delivery.run).toBe(2);
    return claimed;
  };
  const slow = {
    ...setting.deps,
    stores: { ...stores, deliveries: { ...stores.deliveries, reserveRun: claimRun } },
  };
  await redeliverEvent(slow, event._id);
  expect(await setting.inputOf(event)).toMatchObject({ run: 2, resume: true });
  expect(await setting.deliveryOf(event)).toMatchObject({ status: 'pending', run: 2 });
  await setting.handleOf(event).terminate('end of test');
});

test('it is refused when another redelivery came between', async () => {
  const event = await exhaustedEvent();
  const { stores } = setting.deps;
  const claimRun: typeof stores.deliveries.reserveRun = async (...claim) => {
    await stores.deliveries.reserveRun(...claim);
    return await stores.deliveries.reserveRun(...claim);
  };
  const deliveries = { ...stores.deliveries, reserveRun: claimRun };
  const late = { ...setting.deps, stores: { ...stores, deliveries } };
  await expect(redeliverEvent(late, event._id)).rejects.toMatchObject({ code: 'delivery_running' });
  expect(await setting.deliveryOf(event)).toMatchObject({ status: 'pending', run: 1 });
});

test('it is refused without an endpoint, also for an event that never had one', async () => {
  const { account_id } = await openAccount(setting.deps.stores, {});
  const [event] = await recordEvents(setting.service, account_id, ['payment.settled'], null);
  const id = event?._id ?? '';
  expect(await setting.service.refusal('event', 'redeliver', id)).toEqual({
    code: 'webhook_not_set',
    message: `Nothing to send it to: no sandbox webhook endpoint is registered for ${account_id}.`,
  });
  await registerEndpoint(setting.service, account_id, setting.inbox.url);
  expect(await setting.service.json('event', 'redeliver', id)).toEqual({
    event_id: id,
    status: 'pending',
  });
  await setting.temporal.workflow.getHandle(webhookWorkflowId(id)).terminate('end of test');
});

test('it sends an event that its endpoint had not asked for', async () => {
  const { account_id } = await openAccount(setting.deps.stores, {});
  await registerEndpoint(setting.service, account_id, setting.inbox.url);
  const wanted = ['payment.failed' as const];
  const [event] = await recordEvents(setting.service, account_id, ['payment.settled'], wanted);
  const id = event?._id ?? '';
  expect(event?.delivery).toMatchObject({ status: 'not_subscribed', next_attempt_at: null });
  expect(await setting.service.json('event', 'redeliver', id)).toEqual({
    event_id: id,
    status: 'pending',
  });
  await setting.temporal.workflow.getHandle(webhookWorkflowId(id)).terminate('end of test');
});

test('it leaves the event as it was when Temporal is away or refuses', async () => {
  const event = await exhaustedEvent();
  const redeliver = ['event', 'redeliver', event._id];
  const startedAt = performance.now();
  const away = await run({ ...setting.service.env, TEMPORAL_ADDRESS: '127.0.0.1:1' }, ...redeliver);
  expect(performance.now() - startedAt).toBeLessThan(60_000);
  expect(away.exit).toBe(1);
  expect(away.stderr).toContain('Temporal does not answer at 127.0.0.1:1 (address from the env');
  const elsewhere = commandsIn({ ...setting.service.env, TEMPORAL_NAMESPACE: 'nowhere' });
  const refused = await elsewhere.cli(...redeliver, '--json');
  expect(refused.stderr).toContain('"code":"temporal_refused"');
  expect(await setting.deliveryOf(event)).toEqual(event.delivery);
});

test('it puts the state back when the start itself is refused', async () => {
  const event = await exhaustedEvent();
  // A name that no server takes.
  const deps = { ...setting.deps, webhookQueue: 'q'.repeat(5_000) };
  await expect(redeliverEvent(deps, event._id)).rejects.toMatchObject({
    code: 'temporal_unavailable',
  });
  expect(await setting.deliveryOf(event)).toEqual({ ...event.delivery, run: 1 });
});
