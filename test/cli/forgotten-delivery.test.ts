import { type DeliveryOrphan, findDeliveries, restart } from '../../src/service/orphans';
import type { DeliveryDocument } from '../../src/store/deliveries';
import { createDeliveryState, type StoredDelivery } from '../../src/store/delivery-state';
import type { EventDocument } from '../../src/store/events';
import { useDeliverySetting } from './delivery-setting';

const setting = useDeliverySetting();
beforeEach(async () => {
  await setting.service.db.collection('events').deleteMany({});
});

const DUE_AT = '2026-03-01T12:05:00.000Z';

/** An event with this many failed attempts, whose delivery Temporal has lost. */
async function forgottenEvent(attempts: number): Promise<EventDocument> {
  const event = await setting.event({ status: 'pending', attempts: 0, next_attempt_at: DUE_AT });
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const next_attempt_at = attempt === 12 ? null : DUE_AT;
    await keepAttempt(event, { attempt, outcome: 'failed', next_attempt_at });
  }
  return event;
}

type Attempt = Pick<DeliveryDocument, 'attempt' | 'outcome' | 'next_attempt_at'>;

async function keepAttempt({ _id, created }: EventDocument, attempt: Attempt): Promise<void> {
  await setting.deps.stores.deliveries.addAttempt(rowOf({ _id, created }, attempt));
}

function rowOf(
  { _id, created }: Pick<EventDocument, '_id' | 'created'>,
  attempt: Attempt,
): DeliveryDocument {
  return {
    event_id: _id,
    run: 0,
    at: created,
    url: setting.inbox.url,
    status_code: attempt.outcome === 'failed' ? 500 : 200,
    error: null,
    duration_ms: 1,
    response_excerpt: '',
    ...attempt,
  };
}

async function forgotten(): Promise<DeliveryOrphan[]> {
  const found: DeliveryOrphan[] = [];
  for await (const { orphans } of findDeliveries(setting.deps)) found.push(...orphans);
  return found;
}

async function restartAll(): Promise<void> {
  for (const orphan of await forgotten()) await restart(setting.deps, orphan);
}

test('a delivery that Temporal has lost goes on in its run, after the attempts it has made', async () => {
  const event = await forgottenEvent(3);
  await setting.working(async () => {
    await restartAll();
    expect(await setting.handleOf(event).result()).toEqual({ outcome: 'delivered' });
  });
  expect(setting.bodies()).toEqual([event.body]);
  const rows = await setting.deps.stores.deliveries.forEvent(event._id);
  expect(rows.map(({ run, attempt }) => [run, attempt])).toEqual([
    [0, 4],
    [0, 3],
    [0, 2],
    [0, 1],
  ]);
  expect(await setting.deliveryOf(event)).toMatchObject({
    status: 'delivered',
    attempts: 4,
    run: 0,
  });
  expect(await forgotten()).toEqual([]);
});

test('one that had made its last attempt is exhausted, without another', async () => {
  const event = await forgottenEvent(12);
  await setting.deps.stores.events.setDelivery(event._id, { next_attempt_at: null });
  await setting.working(async () => {
    await restartAll();
    expect(await setting.handleOf(event).result()).toEqual({ outcome: 'exhausted' });
  });
  expect(setting.bodies()).toEqual([]);
  expect(await setting.deliveryOf(event)).toMatchObject({ status: 'exhausted', attempts: 12 });
});

test('the command line lists it and restarts it once; one that runs or is not late is none', async () => {
  const event = await forgottenEvent(1);
  const next_attempt_at = new Date().toISOString();
  await setting.event({ status: 'pending', attempts: 1, next_attempt_at });
  const row = {
    resource: 'delivery',
    id: event._id,
    account_id: event.account_id,
    env: 'sandbox',
    status: 'pending',
    updated_at: DUE_AT,
    age_seconds: expect.any(Number),
    workflow: 'NOT_FOUND',
  };
  const { service } = setting;
  const list = () => service.json('orphan', 'list');
  expect(await list()).toEqual({ data: [row], checked: 1, has_more: false });
  expect((await service.cli('orphan', 'list')).stdout).toContain(
    `\ndelivery  ${event._id}  sandbox`,
  );
  expect(await service.json('orphan', 'restart', event._id)).toMatchObject({ data: [row] });
  expect(await setting.inputOf(event)).toMatchObject({ run: 0, resume: true });
  expect(await list()).toEqual({ data: [], checked: 1, has_more: false });
  expect((await service.refusal('orphan', 'restart', event._id)).code).toBe('not_an_orphan');
  await setting.handleOf(event).terminate('end of test');
  expect(await list()).toMatchObject({ data: [{ id: event._id, workflow: 'TERMINATED' }] });
  expect(await service.json('orphan', 'restart')).toMatchObject({ data: [{ id: event._id }] });
  await setting.handleOf(event).terminate('end of test');
});

test('an index of what is pending serves the walk', async () => {
  const { stores } = setting.deps;
  await stores.events.ensureIndexes();
  const events = createDeliveryState(setting.service.db.collection<StoredDelivery>('events'));
  const plan = JSON.stringify(await events.overdue(DUE_AT).explain('queryPlanner'));
  expect(plan).toContain('"indexName":"pending"');
  expect(plan).not.toContain('COLLSCAN');
});
