import { explain } from '../../src/cli/failure';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { redeliverEvent } from '../../src/service/events/redeliver';
import { redeliverAll } from '../../src/service/events/redeliver-many';
import { type DeliveryOrphan, findDeliveries, restart } from '../../src/service/orphans';
import type { DeliveryDocument } from '../../src/store/deliveries';
import { createDeliveryState, type StoredDelivery } from '../../src/store/delivery-state';
import type { EventDelivery, EventDocument } from '../../src/store/events';
import { eventually } from '../support/http';
import { openAccount } from '../support/service';
import { commandsIn, run } from './cli';
import { useDeliverySetting } from './delivery-setting';
import { recordEvents, registerEndpoint } from './event-log';

const setting = useDeliverySetting();

/** An event whose first delivery ended so long ago that Temporal has deleted its workflow. */
const exhaustedEvent = (): Promise<EventDocument> =>
  setting.event({ status: 'exhausted', attempts: 12, next_attempt_at: null });

test('a redelivery posts the same bytes again under the next run number, and may be repeated', async () => {
  const event = await exhaustedEvent();
  const { stores } = setting.deps;
  const redeliver = () => redeliverEvent(setting.deps, event._id);
  await setting.working(async () => {
    expect((await redeliver())[0]?.delivery).toMatchObject({ status: 'pending', run: 1 });
    expect(await setting.getDelivery(event).result()).toEqual({ outcome: 'delivered' });
    await redeliver();
    await setting.getDelivery(event).result();
  });
  expect(setting.bodies()).toEqual([event.body, event.body]);
  expect(await setting.readState(event)).toMatchObject({ status: 'delivered', run: 2 });
  const rows = await stores.deliveries.forEvent(event._id);
  expect(rows.map(({ run: number, attempt }) => [number, attempt])).toEqual([
    [2, 1],
    [1, 1],
  ]);
});

test('a redelivery replaces a delivery that waits for its next attempt, and sends at once', async () => {
  const event = await exhaustedEvent();
  setting.inbox.answer.status = 500;
  await setting.working(async () => {
    await redeliverEvent(setting.deps, event._id);
    const first = (await setting.getDelivery(event).describe()).runId;
    await eventually('the failure', async () => {
      return (await setting.readState(event))?.attempts === 13;
    });
    setting.inbox.answer.status = 200;
    const [again] = await redeliverEvent(setting.deps, event._id);
    expect(again?.delivery).toMatchObject({ run: 2 });
    expect(await setting.getDelivery(event).result()).toEqual({ outcome: 'delivered' });
    const ended = setting.temporal.workflow.getHandle(webhookWorkflowId(event._id), first);
    expect((await ended.describe()).status.name).toBe('TERMINATED');
  });
  expect(setting.bodies()).toEqual([event.body, event.body]);
  expect(await setting.readState(event)).toEqual({
    status: 'delivered',
    attempts: 14,
    next_attempt_at: null,
    run: 2,
  });
});

test('of several redeliveries at once, only the run that the event names keeps running', async () => {
  const event = await exhaustedEvent();
  const runs = await Promise.all(
    Array.from({ length: 5 }, () => setting.service.cli('event', 'redeliver', event._id, '--json')),
  );
  const refused = runs.filter(({ exit }) => exit !== 0);
  expect(refused.length).toBeLessThan(5);
  for (const { stderr } of refused) expect(stderr).toContain('"code":"delivery_running"');
  expect((await setting.getDelivery(event).describe()).status.name).toBe('RUNNING');
  const { run: number } = await setting.readInput(event);
  expect(await setting.readState(event)).toMatchObject({ status: 'pending', run: number });
  await setting.getDelivery(event).terminate('end of test');
});

test('a redelivery that starts after a later one leaves the later one running', async () => {
  const event = await exhaustedEvent();
  const { stores } = setting.deps;
  const reserveRun: typeof stores.deliveries.reserveRun = async (...run) => {
    const reserved = await stores.deliveries.reserveRun(...run);
    const [later] = await redeliverEvent(setting.deps, event._id);
    expect(later?.delivery.run).toBe(2);
    return reserved;
  };
  const deliveries = { ...stores.deliveries, reserveRun };
  const slow = { ...setting.deps, stores: { ...stores, deliveries } };
  await redeliverEvent(slow, event._id);
  expect(await setting.readInput(event)).toMatchObject({ run: 2, resume: true });
  expect(await setting.readState(event)).toMatchObject({ status: 'pending', run: 2 });
  await setting.getDelivery(event).terminate('end of test');
});

test('a redelivery is refused when another one has reserved a later run', async () => {
  const event = await exhaustedEvent();
  const { stores } = setting.deps;
  const reserveRun: typeof stores.deliveries.reserveRun = async (...run) => {
    await stores.deliveries.reserveRun(...run);
    return await stores.deliveries.reserveRun(...run);
  };
  const deliveries = { ...stores.deliveries, reserveRun };
  const late = { ...setting.deps, stores: { ...stores, deliveries } };
  await expect(redeliverEvent(late, event._id)).rejects.toMatchObject({ code: 'delivery_running' });
  expect(await setting.readState(event)).toMatchObject({ status: 'pending', run: 1 });
});

describe('an event that was not sent', () => {
  /** A merchant's event, of a type that its endpoint, if it has one, wants only if `wants` says so. */
  const record = async (account_id: string, wants: ['payment.failed'] | null) => {
    const [event] = await recordEvents(setting.service, account_id, ['payment.settled'], wants);
    if (event === undefined) throw new Error('No event was recorded.');
    return event;
  };
  const redeliver = async ({ _id }: EventDocument) => {
    const answer = await setting.service.json('event', 'redeliver', _id);
    expect(answer).toEqual({ event_id: _id, status: 'pending' });
    await setting.temporal.workflow.getHandle(webhookWorkflowId(_id)).terminate('end of test');
  };

  test('is refused until its merchant has an endpoint, and then sent', async () => {
    const { account_id } = await openAccount(setting.deps.stores, {});
    const event = await record(account_id, null);
    expect(await setting.service.refusal('event', 'redeliver', event._id)).toEqual({
      code: 'webhook_not_set',
      message: `Nothing to send it to: no sandbox webhook endpoint is registered for ${account_id}.`,
    });
    await registerEndpoint(setting.service, account_id, setting.inbox.url);
    await redeliver(event);
  });

  test('is sent though its endpoint does not subscribe to its type', async () => {
    const { account_id } = await openAccount(setting.deps.stores, {});
    await registerEndpoint(setting.service, account_id, setting.inbox.url);
    const event = await record(account_id, ['payment.failed']);
    expect(event.delivery).toMatchObject({ status: 'not_subscribed', next_attempt_at: null });
    await redeliver(event);
  });
});

test('a redelivery leaves the event unchanged when Temporal does not answer or refuses', async () => {
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
  expect(await setting.readState(event)).toEqual(event.delivery);
});

test('a redelivery restores the state when Temporal refuses to start the workflow', async () => {
  const event = await exhaustedEvent();
  // A name that no server takes.
  const deps = { ...setting.deps, webhookQueue: 'q'.repeat(5_000) };
  await expect(redeliverEvent(deps, event._id)).rejects.toMatchObject({
    code: 'temporal_unavailable',
  });
  expect(await setting.readState(event)).toEqual({ ...event.delivery, run: 1 });
});

describe('event redeliver --account', () => {
  const STATES: EventDelivery[] = [
    { status: 'exhausted', attempts: 12, next_attempt_at: null, run: 0 },
    { status: 'pending', attempts: 5, next_attempt_at: '2026-03-01T18:00:00.000Z', run: 0 },
    { status: 'pending', attempts: 0, next_attempt_at: '2026-03-01T12:00:00.000Z', run: 0 },
    { status: 'delivered', attempts: 1, next_attempt_at: null, run: 0 },
  ];

  /** A merchant with an event in each state, and an exhausted one of another type. */
  async function merchant() {
    const { account_id } = await openAccount(setting.deps.stores, {});
    await registerEndpoint(setting.service, account_id, setting.inbox.url);
    const types = STATES.map(() => 'payment.settled' as const);
    const events = await recordEvents(setting.service, account_id, [...types, 'payment.failed']);
    for (const [n, { _id }] of events.entries()) {
      await setting.deps.stores.events.setDelivery(_id, STATES[n] ?? STATES[0] ?? {});
    }
    const [exhausted, waiting, fresh, delivered, failed] = events;
    if (!exhausted || !waiting || !fresh || !delivered || !failed) throw new Error('Too few.');
    return { account_id, exhausted, waiting, fresh, delivered, failed, events };
  }

  const since = '2026-03-01T12:00:00Z';
  const many = (account: string, ...more: string[]) => {
    const from = ['--account', account, '--env', 'sandbox', '--since', since];
    return ['event', 'redeliver', ...from, ...more];
  };

  async function readRuns(events: EventDocument[]): Promise<(number | undefined)[]> {
    const states = await Promise.all(events.map((event) => setting.readState(event)));
    return states.map((delivery) => delivery?.run);
  }

  async function endAll(events: EventDocument[]): Promise<void> {
    for (const event of events) await setting.getDelivery(event).terminate('end of test');
  }

  test('sends all exhausted and waiting deliveries again, and with --dry-run only counts them', async () => {
    const { account_id, exhausted, waiting, fresh, delivered, failed } = await merchant();
    const counted = { found: 3, by_status: { exhausted: 2, pending: 1 } };
    expect(await setting.service.json(...many(account_id, '--dry-run'))).toEqual({
      ...counted,
      dry_run: true,
      sent: 0,
      skipped: 0,
    });
    const { stdout } = await setting.service.cli(...many(account_id, '--dry-run'));
    expect(stdout).toBe('To be sent again: 3 (exhausted 2, pending 1).\n');
    const all = [exhausted, waiting, fresh, delivered, failed];
    expect(await readRuns(all)).toEqual([0, 0, 0, 0, 0]);

    const sent = { ...counted, dry_run: false, sent: 3, skipped: 0 };
    expect(await setting.service.json(...many(account_id))).toEqual(sent);
    expect(await readRuns(all)).toEqual([1, 1, 0, 0, 1]);
    expect(await setting.readInput(waiting)).toMatchObject({ event_id: waiting._id, run: 1 });
    await endAll([exhausted, waiting, failed]);
  });

  test('selects by type, status and time, and prints its progress on stderr', async () => {
    const { account_id, delivered, failed, events } = await merchant();
    const told = await setting.service.cli(...many(account_id, '--type', 'payment.failed'));
    expect(told).toEqual({
      exit: 0,
      stdout: 'Sent again: 1.\n',
      stderr: 'To be sent again: 1 (exhausted 1, pending 0).\n',
    });
    const again = await setting.service.json(...many(account_id, '--status', 'delivered'));
    expect(again).toMatchObject({ found: 1, by_status: { delivered: 1 }, sent: 1 });
    expect(await readRuns(events)).toEqual([0, 0, 0, 1, 1]);
    const before = many(account_id, '--until', '2026-03-01T12:00:00Z', '--dry-run');
    expect(await setting.service.json(...before)).toMatchObject({ found: 0 });
    await endAll([delivered, failed]);
  });

  test('sends the oldest first at a limited rate, across pages, and says where to go on after a failure', async () => {
    const { account_id, exhausted, waiting, failed } = await merchant();
    const filter = {
      account_id,
      livemode: false,
      since: '2026-03-01T12:00:00.000000000Z',
      until: new Date().toISOString(),
      statuses: ['exhausted', 'pending'] as const,
    };
    const startedAt = performance.now();
    const steps: number[] = [];
    await setting.working(async () => {
      const total = await redeliverAll(setting.deps, filter, ({ sent }) => steps.push(sent), 2);
      expect(total).toEqual({ sent: 3, skipped: 0 });
      expect(performance.now() - startedAt).toBeGreaterThan(140);
      for (const event of [exhausted, waiting, failed]) await setting.getDelivery(event).result();
    });
    expect(steps).toEqual([1, 2, 3]);
    expect([...setting.bodies()].sort()).toEqual(
      [exhausted, waiting, failed].map((e) => e.body).sort(),
    );
    const nowhere = { ...setting.deps, webhookQueue: 'q'.repeat(5_000) };
    const again = redeliverAll(nowhere, { ...filter, statuses: ['delivered'] }, () => undefined);
    expect(await again.catch(explain)).toMatchObject({
      code: 'temporal_unavailable',
      message: expect.stringMatching(
        /Sent again before that: 0\. Go on with --since 2026-03-01T12:/,
      ),
    });
  });

  test('refuses wrong usage, an unknown account and one without an endpoint', async () => {
    const usage = [
      ['event', 'redeliver'],
      ['event', 'redeliver', 'evt_1', '--dry-run'],
      ['event', 'redeliver', '--account', 'acct_1', '--env', 'live'],
      many('acct_1', '--status', 'lost'),
      many('acct_1', '--type', 'payment'),
    ];
    for (const args of usage) {
      expect((await setting.service.refusal(...args)).code).toBe('invalid_usage');
    }
    const { account_id } = await openAccount(setting.deps.stores, {});
    const codes = [many('acct_1'), many(account_id)].map(async (args) => {
      return (await setting.service.refusal(...args)).code;
    });
    expect(await Promise.all(codes)).toEqual(['account_not_found', 'webhook_not_set']);
  });
});

describe('a delivery that Temporal has lost', () => {
  beforeEach(async () => {
    await setting.service.db.collection('events').deleteMany({});
  });

  const DUE_AT = '2026-03-01T12:05:00.000Z';

  /** Records an event with this many failed attempts, whose delivery Temporal has lost. */
  async function recordLost(attempts: number): Promise<EventDocument> {
    const event = await setting.event({ status: 'pending', attempts: 0, next_attempt_at: DUE_AT });
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const row: DeliveryDocument = {
        ...{ event_id: event._id, run: 0, attempt, at: event.created, url: setting.inbox.url },
        ...{ status_code: 500, error: null, duration_ms: 1, response_excerpt: '' },
        ...{ outcome: 'failed', next_attempt_at: attempt === 12 ? null : DUE_AT },
      };
      await setting.deps.stores.deliveries.addAttempt(row);
    }
    return event;
  }

  async function findLost(): Promise<DeliveryOrphan[]> {
    const found: DeliveryOrphan[] = [];
    for await (const { orphans } of findDeliveries(setting.deps)) found.push(...orphans);
    return found;
  }

  async function restartAll(): Promise<void> {
    for (const orphan of await findLost()) await restart(setting.deps, orphan);
  }

  test('continues in its run after the attempts that it has made', async () => {
    const event = await recordLost(3);
    await setting.working(async () => {
      await restartAll();
      expect(await setting.getDelivery(event).result()).toEqual({ outcome: 'delivered' });
    });
    expect(setting.bodies()).toEqual([event.body]);
    const rows = await setting.deps.stores.deliveries.forEvent(event._id);
    expect(rows.map(({ run, attempt }) => [run, attempt])).toEqual([
      [0, 4],
      [0, 3],
      [0, 2],
      [0, 1],
    ]);
    expect(await setting.readState(event)).toMatchObject({
      status: 'delivered',
      attempts: 4,
      run: 0,
    });
    expect(await findLost()).toEqual([]);
  });

  test('is exhausted without another attempt if it has made its last', async () => {
    const event = await recordLost(12);
    await setting.deps.stores.events.setDelivery(event._id, { next_attempt_at: null });
    await setting.working(async () => {
      await restartAll();
      expect(await setting.getDelivery(event).result()).toEqual({ outcome: 'exhausted' });
    });
    expect(setting.bodies()).toEqual([]);
    expect(await setting.readState(event)).toMatchObject({ status: 'exhausted', attempts: 12 });
  });

  test('is listed and restarted once by `orphan`; a delivery that runs or is not late is not listed', async () => {
    const event = await recordLost(1);
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
    expect(await setting.readInput(event)).toMatchObject({ run: 0, resume: true });
    expect(await list()).toEqual({ data: [], checked: 1, has_more: false });
    expect((await service.refusal('orphan', 'restart', event._id)).code).toBe('not_an_orphan');
    await setting.getDelivery(event).terminate('end of test');
    expect(await list()).toMatchObject({ data: [{ id: event._id, workflow: 'TERMINATED' }] });
    expect(await service.json('orphan', 'restart')).toMatchObject({ data: [{ id: event._id }] });
    await setting.getDelivery(event).terminate('end of test');
  });

  test('is found by the index of pending deliveries', async () => {
    const { stores } = setting.deps;
    await stores.events.ensureIndexes();
    const events = createDeliveryState(setting.service.db.collection<StoredDelivery>('events'));
    const plan = JSON.stringify(await events.overdue(DUE_AT).explain('queryPlanner'));
    expect(plan).toContain('"indexName":"pending"');
    expect(plan).not.toContain('COLLSCAN');
  });
});
