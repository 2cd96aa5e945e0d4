import { randomUUID } from 'node:crypto';
import { explain } from '../../src/cli/failure';
import { type EventType, webhookWorkflowId } from '../../src/domain/webhook/event';
import { redeliverEvent } from '../../src/service/events/redeliver';
import { redeliverAll } from '../../src/service/events/redeliver-many';
import { findDeliveries, restart } from '../../src/service/orphans';
import { type DeliveryRow, listAttempts } from '../../src/store/deliveries';
import type { EventDocument } from '../../src/store/events';
import { useFixture } from '../support/fixture';
import { readPayloads } from '../support/histories';
import { useHook } from '../support/hook';
import { eventually } from '../support/http';
import { commandsIn, run } from './cli';
import { recordEvents } from './event-log';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();
const service = useFixture(async () => setting.service);
const hook = useHook(service);

type State = Pick<DeliveryRow, 'status' | 'attempts' | 'next_attempt_at'>;
const EXHAUSTED: State = { status: 'exhausted', attempts: 12, next_attempt_at: null };
const DUE_AT = '2026-03-01T12:05:00.000Z';

/** Deliveries that a command starts have no worker: they run until the end of a test. */
const recorded: EventDocument[] = [];
const getDelivery = ({ _id }: EventDocument, runId?: string) =>
  service.temporal.workflow.getHandle(webhookWorkflowId(_id), runId);
afterEach(async () => {
  for (const event of recorded.splice(0)) {
    const ended = getDelivery(event).terminate('end of test');
    await ended.catch(() => undefined);
  }
});

async function openMerchant(): Promise<string> {
  const account = await service.account();
  await hook.register(account);
  return account.account_id;
}

/** Records an event of a payment, whose delivery is in a state. */
async function buildEvent(
  state: State,
  { account_id, type = 'payment.settled' }: { account_id?: string; type?: EventType } = {},
): Promise<EventDocument> {
  const [event] = await recordEvents(service, account_id ?? (await openMerchant()), [type]);
  if (event === undefined) throw new Error('No event was recorded.');
  await setState(event, state);
  recorded.push(event);
  return event;
}

const setState = ({ _id: event_id }: EventDocument, state: Partial<State>) =>
  service.collection('deliveries').updateOne({ event_id }, { $set: state });

/** Reads the state of the delivery, which goes to the one endpoint. */
async function readState({ _id }: Pick<EventDocument, '_id'>) {
  const [row] = await service.stores.deliveries.forEvents([_id]);
  if (row === undefined) return undefined;
  const { status, attempts, next_attempt_at, run: number } = row;
  return { status, attempts, next_attempt_at, run: number };
}

const readAttempts = async ({ _id }: EventDocument) =>
  listAttempts(await service.stores.deliveries.readLogs([_id]));

/** Reads the input with which the running delivery was started. */
const readInput = async ({ _id }: EventDocument) =>
  (await readPayloads(service.temporal, webhookWorkflowId(_id))).input;
const listBodies = () => hook.received.map(({ body }) => body);
/** Dependencies without a worker. */
const buildIdle = () => ({ ...setting.deps, webhookQueue: `idle-${randomUUID()}` });
/** Dependencies that Temporal refuses: no server takes such a name. */
const buildRefused = () => ({ ...setting.deps, webhookQueue: 'q'.repeat(5_000) });

describe('event list', () => {
  const page = async (account: string, ...options: string[]) =>
    Object(await setting.json('event', 'list', account, '--env', 'sandbox', ...options));

  test('shows each event as it is sent, newest first, with the option for the next page', async () => {
    const { account_id } = await service.account();
    const types = ['payment.authorized', 'payment.settled'] as const;
    const events = await recordEvents(service, account_id, [...types]);
    const newestFirst = events.toSorted((a, b) => (a.position < b.position ? 1 : -1));
    const rows = newestFirst.map(({ _id: id, type, created, data }) => {
      const delivery = { status: 'pending', attempts: 0, next_attempt_at: created };
      return { id, type, created, livemode: false, data, delivery };
    });
    const { next_cursor, ...first } = await page(account_id, '--limit', '1');
    expect(first).toEqual({ data: rows.slice(0, 1), has_more: true });
    expect(await page(account_id, '--before', next_cursor)).toEqual({
      ...{ data: rows.slice(1), has_more: false, next_cursor: null },
    });
    const list = ['event', 'list', account_id, '--env', 'sandbox', '--limit', '1'];
    const { stdout } = await setting.cli(...list);
    expect(stdout).toMatch(/^EVENT +CREATED +TYPE +RESOURCE +DELIVERY +ATTEMPTS +NEXT ATTEMPT\n/);
    expect(stdout).toContain('2026-03-01 12:00:00 UTC');
    expect(stdout).toContain(`There are more: --before ${next_cursor}`);
  });

  test('filters by account, environment, resource and time', async () => {
    const { account_id } = await service.account();
    const [event] = await recordEvents(service, account_id, ['payment.failed']);
    await recordEvents(service, account_id, ['payment.expired']);
    const { data } = await page(account_id, '--resource', event?.resource_id ?? '');
    expect(data).toMatchObject([{ id: event?._id }]);
    const count = async (...options: string[]) => (await page(account_id, ...options)).data.length;
    expect(await count()).toBe(2);
    expect(await count('--before', '2026-03-01T12:00:00Z')).toBe(0);
    expect(await count('--before', '2026-03-01T13:00:01+01:00')).toBe(2);
    const other = await service.account();
    expect((await page(other.account_id)).data).toEqual([]);
    const live = await setting.json('event', 'list', account_id, '--env', 'live');
    expect(live).toEqual({ data: [], has_more: false, next_cursor: null });
  });
});

test('event show lists every attempt, the first one first', async () => {
  const event = await buildEvent({ status: 'pending', attempts: 0, next_attempt_at: DUE_AT });
  const { _id: id, account_id } = event;
  const [row] = await service.stores.deliveries.forEvents([id]);
  const first = {
    ...{
      endpoint_id: row?.endpoint_id ?? '',
      run: 0,
      attempt: 1,
      at: '2026-03-01T12:00:00.100Z',
      duration_ms: 12,
    },
    ...{ url: 'https://shop.example/hook', status_code: 500, error: null },
    ...{ response_excerpt: '\u001b[31mno', next_attempt_at: DUE_AT },
    outcome: 'failed' as const,
  };
  const second = { ...first, attempt: 2, status_code: null, error: 'x\u0007' };
  for (const attempt of [second, first]) {
    await service.stores.deliveries.addAttempt({ event_id: id, ...attempt });
  }
  const shown = Object(await setting.json('event', 'show', id));
  expect(shown).toMatchObject({ id, account_id, delivery: { status: 'pending' } });
  expect(shown.attempts).toEqual([first, second]);
  const { stdout } = await setting.cli('event', 'show', id);
  expect(stdout).toMatch(/2026-03-01 12:00:00 UTC +first +1 +failed +HTTP 500 +12 ms +https:/);
  expect(stdout).not.toContain('\u0007');
});

describe('event redeliver', () => {
  test('posts the same bytes under the next run number, also in place of a delivery that waits', async () => {
    const event = await buildEvent(EXHAUSTED);
    hook.answer.status = 500;
    const [first] = await redeliverEvent(setting.deps, event._id);
    expect(first).toMatchObject({ status: 'pending', run: 1 });
    const { runId } = await getDelivery(event).describe();
    await eventually('the failure', async () => (await readState(event))?.attempts === 13);
    hook.answer.status = 200;
    const [again] = await redeliverEvent(setting.deps, event._id);
    expect(again).toMatchObject({ run: 2 });
    expect(await getDelivery(event, runId).result()).toEqual({
      [again?.endpoint_id ?? '']: 'delivered',
    });
    expect(listBodies()).toEqual([event.body, event.body]);
    expect(await readState(event)).toEqual({
      ...{ status: 'delivered', attempts: 14, next_attempt_at: null, run: 2 },
    });
    expect(await readAttempts(event)).toMatchObject(
      [2, 1].map((number) => ({ run: number, attempt: 1 })),
    );
  });

  test('of several at once makes each run that is reserved, or a later one, and no other', async () => {
    const event = await buildEvent(EXHAUSTED);
    hook.answer.status = 500;
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, () => redeliverEvent(setting.deps, event._id)),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused.length).toBeLessThan(5);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: 'delivery_running' });
    const reserved = (await readState(event))?.run;
    await eventually('an attempt of the last', async () =>
      (await readAttempts(event)).some(({ run: number }) => number === reserved),
    );
    const { raw } = await getDelivery(event).describe();
    expect(raw.pendingActivities).toHaveLength(1);
  });

  type ReserveRun = typeof setting.deps.stores.deliveries.reserveRun;
  function buildReserving(reserveRun: ReserveRun, deps = buildIdle()) {
    const { stores } = setting.deps;
    const deliveries = { ...stores.deliveries, reserveRun };
    return { ...deps, stores: { ...stores, deliveries } };
  }

  test('that comes after a later one leaves that', async () => {
    const event = await buildEvent(EXHAUSTED);
    hook.answer.status = 500;
    const { reserveRun } = setting.deps.stores.deliveries;
    const slow: ReserveRun = async (...args) => {
      const reserved = await reserveRun(...args);
      const [later] = await redeliverEvent(setting.deps, event._id);
      expect(later?.run).toBe(2);
      return reserved;
    };
    await redeliverEvent(buildReserving(slow, setting.deps), event._id);
    await eventually('an attempt', async () => (await readState(event))?.attempts === 13);
    expect(await readAttempts(event)).toMatchObject([{ run: 2 }]);
    expect(await readState(event)).toMatchObject({ status: 'pending', run: 2 });
  });

  test('is refused when another one has reserved the run', async () => {
    const event = await buildEvent(EXHAUSTED);
    const { reserveRun } = setting.deps.stores.deliveries;
    const late: ReserveRun = async (...args) => {
      await reserveRun(...args);
      return await reserveRun(...args);
    };
    const redelivery = redeliverEvent(buildReserving(late), event._id);
    await expect(redelivery).rejects.toMatchObject({ code: 'delivery_running' });
    expect(await readState(event)).toMatchObject({ status: 'pending', run: 1 });
  });

  test('sends an event without an endpoint once there is one, also one that is not subscribed', async () => {
    const account = await service.account();
    const record = async (wants: ['payment.failed'] | null) => {
      const types: EventType[] = ['payment.settled'];
      const [event] = await recordEvents(service, account.account_id, types, wants);
      if (event === undefined) throw new Error('No event was recorded.');
      recorded.push(event);
      return event;
    };
    const { _id } = await record(null);
    expect(await setting.refusal('event', 'redeliver', _id)).toEqual({
      code: 'webhook_not_set',
      message: `Nothing to send it to: no sandbox webhook endpoint is registered for ${account.account_id}.`,
    });
    await hook.register(account);
    const other = await record(['payment.failed']);
    expect(await readState(other)).toMatchObject({
      ...{ status: 'not_subscribed', next_attempt_at: null },
    });
    expect(await readState({ _id })).toBeUndefined();
    for (const event_id of [_id, other._id]) {
      const answer = await setting.json('event', 'redeliver', event_id);
      expect(answer).toEqual({ event_id, status: 'pending' });
    }
  });

  test('leaves the event unchanged when Temporal does not answer or refuses', async () => {
    const event = await buildEvent(EXHAUSTED);
    const before = await readState(event);
    const redeliver = ['event', 'redeliver', event._id];
    const startedAt = performance.now();
    const away = await run({ ...setting.env, TEMPORAL_ADDRESS: '127.0.0.1:1' }, ...redeliver);
    expect(performance.now() - startedAt).toBeLessThan(60_000);
    expect(away.exit).toBe(1);
    expect(away.stderr).toContain('Temporal does not answer at 127.0.0.1:1 (address from the env');
    const elsewhere = commandsIn({ ...setting.env, TEMPORAL_NAMESPACE: 'nowhere' });
    const refused = await elsewhere.cli(...redeliver, '--json');
    expect(refused.stderr).toContain('"code":"temporal_refused"');
    expect(await readState(event)).toEqual(before);
    // Refused only once the run is reserved.
    await expect(redeliverEvent(buildRefused(), event._id)).rejects.toMatchObject({
      code: 'temporal_unavailable',
    });
    expect(await readState(event)).toEqual({ ...before, run: 1 });
  });

  test('and event show refuse an unknown event', async () => {
    const id = `evt_${randomUUID()}`;
    const refusal = { code: 'event_not_found', message: `There is no event ${id}.` };
    expect(await setting.refusal('event', 'show', id)).toEqual(refusal);
    expect(await setting.refusal('event', 'redeliver', id)).toEqual(refusal);
  });
});

describe('event redeliver --account', () => {
  const since = '2026-03-01T12:00:00Z';
  const many = (account: string, ...more: string[]) => {
    const from = ['--account', account, '--env', 'sandbox', '--since', since];
    return ['event', 'redeliver', ...from, ...more];
  };

  /** A merchant with an event in each state, and an exhausted one of another type. */
  async function buildEvents() {
    const account_id = await openMerchant();
    const build = (state: State, type?: EventType) =>
      buildEvent(state, type === undefined ? { account_id } : { account_id, type });
    return {
      account_id,
      exhausted: await build(EXHAUSTED),
      failed: await build(EXHAUSTED, 'payment.failed'),
      waiting: await build({ status: 'pending', attempts: 5, next_attempt_at: DUE_AT }),
      fresh: await build({ status: 'pending', attempts: 0, next_attempt_at: DUE_AT }),
      delivered: await build({ status: 'delivered', attempts: 1, next_attempt_at: null }),
    };
  }
  type Events = Awaited<ReturnType<typeof buildEvents>>;
  const readRuns = ({ exhausted, failed, waiting, fresh, delivered }: Events) =>
    Promise.all(
      [exhausted, failed, waiting, fresh, delivered].map(
        async (event) => (await readState(event))?.run,
      ),
    );

  test('sends all exhausted and waiting deliveries again, and with --dry-run only counts them', async () => {
    const events = await buildEvents();
    const { account_id, waiting } = events;
    const counted = { found: 3, by_status: { exhausted: 2, pending: 1 } };
    expect(await setting.json(...many(account_id, '--dry-run'))).toEqual({
      ...{ ...counted, dry_run: true, sent: 0, skipped: 0 },
    });
    const { stdout } = await setting.cli(...many(account_id, '--dry-run'));
    expect(stdout).toBe('To be sent again: 3 (exhausted 2, pending 1).\n');
    expect(await readRuns(events)).toEqual([0, 0, 0, 0, 0]);
    expect(await setting.json(...many(account_id))).toEqual({
      ...{ ...counted, dry_run: false, sent: 3, skipped: 0 },
    });
    expect(await readRuns(events)).toEqual([1, 1, 1, 0, 0]);
    expect(await readInput(waiting)).toMatchObject({
      ...{ event_id: waiting._id, endpoints: [{ run: 1 }] },
    });
  });

  test('selects by type, status and time, and prints its progress on stderr', async () => {
    const events = await buildEvents();
    const { account_id } = events;
    expect(await setting.cli(...many(account_id, '--type', 'payment.failed'))).toEqual({
      exit: 0,
      stdout: 'Sent again: 1.\n',
      stderr: 'To be sent again: 1 (exhausted 1, pending 0).\n',
    });
    const again = await setting.json(...many(account_id, '--status', 'delivered'));
    expect(again).toMatchObject({ found: 1, by_status: { delivered: 1 }, sent: 1 });
    expect(await readRuns(events)).toEqual([0, 1, 0, 0, 1]);
    const before = many(account_id, '--until', since, '--dry-run');
    expect(await setting.json(...before)).toMatchObject({ found: 0 });
  });

  test('sends at a limited rate, across pages, and says where to go on after a failure', async () => {
    const { account_id, exhausted, waiting, failed } = await buildEvents();
    const filter = {
      ...{ account_id, livemode: false, until: new Date().toISOString() },
      since: '2026-03-01T12:00:00.000000000Z',
      statuses: ['exhausted', 'pending'] as const,
    };
    const startedAt = performance.now();
    const steps: number[] = [];
    const total = await redeliverAll(setting.deps, filter, ({ sent }) => steps.push(sent), 2);
    expect(total).toEqual({ sent: 3, skipped: 0 });
    expect(performance.now() - startedAt).toBeGreaterThan(140);
    expect(steps).toEqual([1, 2, 3]);
    const sent = [exhausted, waiting, failed];
    for (const event of sent) await getDelivery(event).result();
    expect(listBodies().toSorted()).toEqual(sent.map(({ body }) => body).toSorted());
    const delivered = { ...filter, statuses: ['delivered'] as const };
    const stopped = await redeliverAll(buildRefused(), delivered, () => undefined).catch(explain);
    const hint = /Sent again before that: 0\. Go on with --since 2026-03-01T12:/;
    expect(stopped).toMatchObject({
      ...{ code: 'temporal_unavailable', message: expect.stringMatching(hint) },
    });
  });

  test('refuses wrong usage, an unknown account and one without an endpoint', async () => {
    const { account_id } = await service.account();
    const refusals: [string[], string][] = [
      [['event', 'redeliver'], 'invalid_usage'],
      [['event', 'redeliver', 'evt_1', '--dry-run'], 'invalid_usage'],
      [['event', 'redeliver', '--account', 'acct_1', '--env', 'live'], 'invalid_usage'],
      [many('acct_1', '--status', 'lost'), 'invalid_usage'],
      [many('acct_1', '--type', 'payment'), 'invalid_usage'],
      [many('acct_1'), 'account_not_found'],
      [many(account_id), 'webhook_not_set'],
    ];
    for (const [args, code] of refusals) expect((await setting.refusal(...args)).code).toBe(code);
  });
});

// How such deliveries are listed is in reconcile.test.ts.
describe('a delivery that Temporal has lost', () => {
  /** Records an event with failed attempts, and restarts its delivery to its end. */
  async function restartAfter(attempts: number, next_attempt_at: string | null) {
    const event = await buildEvent({ status: 'pending', attempts: 0, next_attempt_at: DUE_AT });
    const [{ endpoint_id } = { endpoint_id: '' }] = await service.stores.deliveries.forEvents([
      event._id,
    ]);
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      await service.stores.deliveries.addAttempt({
        ...{ event_id: event._id, endpoint_id, run: 0, attempt, at: event.created, url: hook.url },
        ...{ status_code: 500, error: null, duration_ms: 1, response_excerpt: '' },
        ...{ outcome: 'failed', next_attempt_at: DUE_AT },
      });
    }
    await setState(event, { next_attempt_at });
    for await (const { orphans } of findDeliveries(setting.deps, [event._id])) {
      for (const orphan of orphans) await restart(setting.deps, orphan);
    }
    return { event, outcomes: Object.values(await getDelivery(event).result()) };
  }

  test('continues in its run after the attempts that it has made', async () => {
    const { event, outcomes } = await restartAfter(3, DUE_AT);
    expect(outcomes).toEqual(['delivered']);
    expect(listBodies()).toEqual([event.body]);
    expect(await readAttempts(event)).toMatchObject(
      [4, 3, 2, 1].map((attempt) => ({ run: 0, attempt })),
    );
    const state = { status: 'delivered', attempts: 4, run: 0 };
    expect(await readState(event)).toMatchObject(state);
  });
});
