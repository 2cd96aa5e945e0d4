import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CancelledFailure } from '@temporalio/activity';
import { Client, type ScheduleHandle } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { CommandStartedEvent } from 'mongodb';
import { createClockActivities } from '../../../activities/clock';
import { createAuditActivities } from '../../../activities/schedules/audit';
import { countHistories } from '../../../bench/measure/histories';
import { createBank } from '../../../bench/product/bank';
import type { ResourceCallback } from '../../../src/callbacks/deliver';
import { createConnectorKey } from '../../../src/callbacks/keys';
import { webhookWorkflowId } from '../../../src/domain/events/event';
import type { StoredClock } from '../../../src/domain/merchants/clock';
import type { AuditResult, OrphanFindings } from '../../../src/domain/operators/audit-log';
import type { LedgerCheckResult } from '../../../src/domain/operators/ledger-check';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { followKeyFile } from '../../../src/encryption/service-keys';
import { LIFECYCLES } from '../../../src/lifecycles';
import { findResources, restart } from '../../../src/service/operators/reconcile/orphans';
import type { Stores } from '../../../src/store';
import type { DeliveryRow } from '../../../src/store/deliveries';
import { createMetricStore } from '../../../src/store/metrics';
import type { PayoutDocument } from '../../../src/store/payouts';
import { ensureSchedule, getScheduleId } from '../../../src/temporal/schedules';
import { WORKER_OPTIONS } from '../../../worker/create-worker';
import { storedPayout } from '../../api/payout-setting';
import { recordEvents } from '../../cli/event-log';
import { patientClient, useResourceSetting } from '../../cli/resource-setting';
import { ROOT } from '../../docs/pages';
import { workflowBundles } from '../../support/bundle';
import { useDatabase } from '../../support/database';
import { eventually, retryUntilDone } from '../../support/eventually';
import { buildAccount, buildEndpoint, buildPayment, buildPayout } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { saveHistory } from '../../support/histories';
import { idealPayment } from '../../support/http';
import { paymentAt } from '../../support/list-rows';
import { mockActivityEnvironment } from '../../support/quiet';
import { runWhile } from '../../support/run-while';
import { temporalAddress } from '../../support/servers';
import type { Account } from '../../support/service';
import { useRealServer } from '../webhook/setting';

/**
 * A product of its own: audits and ledger checks read all accounts, and commands are counted while
 * settings are cached. Live's queue runs the schedules.
 */
const setting = useResourceSetting({ environments: ['sandbox', 'live'], economical: true });

/** The schedule of audits is paused: only these tests start one. */
const schedule: ScheduleHandle = useFixture(
  async () => {
    const { temporal, lifecycleQueue } = setting.deps;
    expect(await ensureSchedule(temporal, 'audit', lifecycleQueue)).toBe('made');
    const handle = temporal.schedule.getHandle(getScheduleId('audit', lifecycleQueue));
    await handle.pause('in a test');
    return handle;
  },
  (handle) => handle.delete(),
);

const MINUTE_MS = 60_000;

describe('a check of the ledger', () => {
  async function check(history: string) {
    const { temporal, queues } = setting.service;
    const handle = await temporal.workflow.start<() => Promise<LedgerCheckResult>>('ledgerCheck', {
      ...{ taskQueue: queues.lifecycle, workflowId: `ledger-${randomUUID()}` },
    });
    const result = await handle.result();
    await saveHistory(handle, history);
    const { typedSearchAttributes } = await handle.describe();
    return { result, attention: typedSearchAttributes.get(SEARCH_KEYS.attention) };
  }

  test('checks all of it once a week, and needs attention for differences', async () => {
    const { db, stores } = setting.service;
    const readMetrics = () => createMetricStore(db).read(new Date());
    const first = await check('schedule-ledger');
    expect(first.result).toMatchObject({ full: true, differences: 0, named: [] });
    expect(first.result.postings).toBeGreaterThan(0);
    expect(first.attention).toBeUndefined();
    const { ledger, schedules } = await readMetrics();
    expect(ledger).toMatchObject({ differences: 0, full_at: ledger?.checked_at });
    expect(schedules).toEqual([{ schedule: 'ledger', succeeded_at: expect.any(String) }]);

    const { books } = stores.ledger.collections;
    const _id = (await books.findOne({}))?._id ?? '';
    const credit = (available: number) =>
      books.updateOne({ _id }, { $inc: { 'balances.main.available': available } });
    await credit(1);
    const second = await check('schedule-ledger-differs');
    expect(second.attention).toBe('ledger_differs');
    expect(second.result).toMatchObject({
      ...{ full: false, differences: 2 },
      named: expect.arrayContaining([`balance_differs: ${_id} balances.main.available`]),
    });
    const { ledger: after } = await readMetrics();
    expect(after).toMatchObject({ differences: 2, full_at: ledger?.full_at });
    await credit(-1);
  });
});

describe('an audit', () => {
  const ALL_IS_WELL: AuditResult = {
    orphans: { checked: expect.any(Number), found: 0, named: [], walked_at: expect.any(String) },
    deliveries: { checked: 0, restarted: 0, failed: 0, named: [] },
    callbacks: { delivered: 0, waiting: 0, parked: 0, parked_lately: 0, named: [] },
    attention: null,
  };

  /** Makes the schedule start one, and waits for its end. */
  async function audit(history?: string) {
    const readInfo = async () => (await schedule.describe()).info;
    const before = (await readInfo()).numActionsTaken;
    await schedule.trigger();
    await eventually('the start', async () => (await readInfo()).numActionsTaken > before);
    const started = (await readInfo()).recentActions.at(-1)?.action.workflow;
    if (started === undefined) throw new Error('The schedule has started nothing.');
    const { workflowId, firstExecutionRunId } = started;
    const handle = setting.deps.temporal.workflow.getHandle<() => Promise<AuditResult>>(
      workflowId,
      firstExecutionRunId,
    );
    const result = await handle.result();
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(SEARCH_KEYS.resource)).toBe('audit');
    expect(typedSearchAttributes.get(SEARCH_KEYS.attention) ?? null).toBe(result.attention);
    if (history !== undefined) await saveHistory(handle, history);
    const metadata: { currentDetails?: string } = await handle.query(
      '__temporal_workflow_metadata',
    );
    return { result, details: metadata.currentDetails ?? '' };
  }

  /** Stores a callback as it is when its connector is killed before the signal. @returns its id */
  async function insertCallback(resource_id: string, minutesAgo: number): Promise<string> {
    const { stores, connector } = setting.service;
    const { _id } = await stores.callbacks.insertOnce({
      ...{ connector, resource: 'payout', resource_id, name: 'completed' },
      body: { callback_id: `cb_${randomUUID()}`, occurred_at: '2026-03-01T12:00:00.000Z' },
      received_at: new Date(Date.now() - minutesAgo * MINUTE_MS).toISOString(),
    });
    return _id;
  }

  test('repeats what is safe to repeat, and needs attention for orphans and waiting callbacks', async () => {
    const { shop, service, deps } = setting;
    const { callbacks, payouts, deliveries } = service.stores;
    expect((await audit('schedule-audit')).result).toEqual(ALL_IS_WELL);

    const orphan = await setting.payout({ amount: 66_623 });
    await setting.terminate('payout', orphan);
    const unheard = await setting.payout({ amount: 66_623 });
    const late = await insertCallback(unheard, 10);
    await insertCallback(unheard, 1);
    const unreadable = await insertCallback('no id of ours', 10);
    const parked = await insertCallback(randomUUID(), 10);
    const old = await insertCallback(randomUUID(), 8 * 24 * 60);
    await callbacks.park(old, 'no such payout at this connector');
    const [event] = await recordEvents(deps, shop.account_id, ['payment.settled']);

    const { result, details } = await audit('schedule-audit-orphans');
    expect(result).toEqual({
      orphans: {
        ...{ checked: expect.any(Number), found: 1, named: [`payout:${orphan}`] },
        walked_at: expect.any(String),
      },
      deliveries: { checked: 1, restarted: 1, failed: 0, named: [event?._id] },
      callbacks: {
        ...{ delivered: 1, waiting: 1, parked: 2, parked_lately: 1 },
        named: [unreadable, parked],
      },
      attention: 'orphans_found',
    });
    expect(details).toMatch(/^⚠ \*\*orphans_found\*\*\n\n\d+ resources checked, 1 /);
    expect(details).toContain(
      `See \`orphan list\`, then \`orphan restart\`.\n\n- \`payout:${orphan}\``,
    );
    expect(details).toContain(
      `then \`callback deliver ID\`.\n\n- \`${unreadable}\`\n- \`${parked}\``,
    );
    expect((await callbacks.get(late))?.signalled_at).not.toBeNull();
    await eventually(
      'the completion',
      async () => (await payouts.get(unheard))?.status === 'completed',
    );
    await eventually('the end of the delivery', async () => {
      // This merchant has no endpoint.
      const [row] = await deliveries.forEvents([event?._id ?? '']);
      return row?.status === 'no_endpoint';
    });

    for await (const { orphans } of findResources(deps)) {
      for (const each of orphans) await restart(deps, each);
    }
    expect((await audit()).result).toMatchObject({
      orphans: { found: 0 },
      deliveries: { restarted: 0 },
      callbacks: { delivered: 0, waiting: 1, parked: 2, parked_lately: 1 },
      attention: 'callbacks_waiting',
    });
    await deps.db.collection('bank_callbacks').deleteMany({});
    const end = await audit();
    expect(end.result).toEqual(ALL_IS_WELL);
    expect(end.details).toMatch(/^\*\*All is well\.\*\*\n\n/);
  });

  test('needs attention for late funds that are not back after five days', async () => {
    const { shop, service } = setting;
    const rows = service.collection<{ _id: string }>('payments');
    // Back long ago, and not acknowledged.
    const { id: first } = await buildPayment(shop, { status: 'cancelled' });
    const known = { attention: 'late_settlement_reversed', attention_since: 1 };
    const copy = { ...(await rows.findOne({ _id: first })), ...known };
    const copies = Array.from({ length: 1_000 }, () => ({ ...copy, _id: randomUUID() }));
    await rows.insertMany(
      copies.map((row) => ({ ...row, position: row._id, token_hash: row._id })),
    );
    const ids = await Promise.all(
      [6, 4, 6].map(async (daysAgo) => {
        const { id } = await buildPayment(shop, { status: 'cancelled' });
        await setting.simulate('payment', id, { event: 'settled' });
        await service.becomes('payments', id, { attention: 'late_settlement_reversed' });
        await setting.handle('payment', id).result();
        const attention_since = Date.now() - daysAgo * 24 * 60 * MINUTE_MS;
        await rows.updateOne({ _id: id }, { $set: { attention_since } });
        return id;
      }),
    );
    const [overdue = '', young = '', back = ''] = ids;
    await setting.simulate('payment', back, { event: 'reversed' });
    await setting.handle('payment', back).result();
    await audit();
    const { payments } = service.stores;
    const read = async (id: string) => (await payments.get(id))?.attention;
    expect(await read(overdue)).toBe('late_reversal_overdue');
    for (const id of [young, back]) expect(await read(id)).toBe('late_settlement_reversed');
    await rows.deleteMany(known);
  });
});

test('a worker that starts corrects a schedule that differs, and leaves its pause', async () => {
  const { lifecycleQueue } = setting.deps;
  const connection = await NativeConnection.connect({ address: temporalAddress() });
  const temporal = patientClient(new Client({ connection }));
  const ensure = () => retryUntilDone(() => ensureSchedule(temporal, 'audit', lifecycleQueue));
  try {
    expect(await ensure()).toBe('kept');
    await schedule.update(({ action, ...previous }) => ({
      ...previous,
      spec: { intervals: [{ every: '1 day' }] },
      // The queue of no environment.
      action: { ...action, taskQueue: lifecycleQueue },
    }));
    expect(await ensure()).toBe('changed');
    const { action, spec, state, policies } = await schedule.describe();
    expect(action).toMatchObject({
      taskQueue: `${lifecycleQueue}-live`,
      workflowId: `audit:${lifecycleQueue}`,
    });
    expect(spec.intervals).toEqual([expect.objectContaining({ every: 60 * MINUTE_MS })]);
    expect([state.paused, state.note, policies.overlap]).toEqual([true, 'in a test', 'SKIP']);
    const nowhere = new Client({ connection, namespace: 'nowhere' });
    await expect(ensureSchedule(nowhere, 'audit', lifecycleQueue)).rejects.toThrow();
  } finally {
    await connection.close();
  }
});

test('a schedule of each day is created once, and runs late on the same day', async () => {
  const { temporal } = setting.deps;
  const queue = `lifecycle-${randomUUID()}`;
  const both = [1, 2].map(() => ensureSchedule(temporal, 'retention', queue));
  expect((await Promise.all(both)).sort()).toEqual(['kept', 'made']);
  const handle = temporal.schedule.getHandle(getScheduleId('retention', queue));
  const { spec, policies } = await handle.describe();
  expect(spec.intervals).toMatchObject([{ every: 24 * 60 * MINUTE_MS }]);
  expect(policies.catchupWindow).toBe(20 * 60 * MINUTE_MS);
  await handle.delete();
});

describe('the cost in commands', () => {
  // Each command is counted; a machine that stalls adds some.
  beforeAll(() => void jest.retryTimes(3));
  afterAll(() => void jest.retryTimes(0));

  const KINDS = ['payment', 'refund', 'payout'] as const;
  type Kind = (typeof KINDS)[number];
  const PAGE = readFileSync(join(ROOT, 'docs/scale.md'), 'utf8');

  /** Reads a column of the table of commands. */
  function readTable(kind: Kind): Record<string, number> {
    const rows = PAGE.matchAll(/^\| `(commit|\w+ \S+)` \|([\d |]+) \|/gm);
    const counts = [...rows].map(([, name = '', cells = '']) => {
      return [name, Number(cells.split('|')[KINDS.indexOf(kind)] ?? 0)] as const;
    });
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  }

  /** Commands that several resources share, or that come by the clock. */
  const APART = [
    ...['getMore', 'update bank_callbacks', 'heartbeats', 'outbox', 'sandbox_reports'],
    ...['chain_transactions', 'insert requests', 'update api_keys', 'endSessions'],
    ...['connector_capabilities', 'reports_set_aside'],
  ];
  /** Commands of the API, the worker and the sandbox bank. */
  const commands = new Map<string, number>();
  const count = (name: string) => commands.get(name) ?? 0;

  const bank = useFixture(
    async () => {
      const { connector, database, mongo, stores, keysFile, url } = setting.service;
      const note = ({ commandName, command, databaseName }: CommandStartedEvent) => {
        const owner = databaseName === database ? '' : 'bank.';
        const isCommit = commandName === 'commitTransaction';
        const name = isCommit ? 'commit' : `${commandName} ${owner}${command[commandName]}`;
        if (!APART.some((word) => name.includes(word))) commands.set(name, count(name) + 1);
      };
      mongo.on('commandStarted', note);
      const encrypter = createEncrypter(followKeyFile(keysFile).seal);
      const parts = { mongo, stores, encrypter, audit: async () => {}, now: () => new Date() };
      const { secret } = await createConnectorKey(parts, connector);
      return createBank(url, { connector, secret }, 1);
    },
    (opened) => opened.close(),
  );

  async function readFirstAttempts({ account_id }: Account): Promise<DeliveryRow[]> {
    const deliveries = setting.service.collection<DeliveryRow>('deliveries');
    return await eventually('each first attempt', async () => {
      const found = await deliveries.find({ account_id }).toArray();
      return found.every(({ attempts }) => attempts > 0) && found;
    });
  }

  /** Makes what must exist before. @returns path and body of the create that is counted */
  const prepare = {
    payment: async () => ['/v1/payments', idealPayment()],
    refund: async (account) => {
      const { id: payment_id } = await buildPayment(account, { status: 'settled' });
      return ['/v1/refunds', { payment_id, reason: 'requested' }];
    },
    payout: async (account) => {
      const { recipient_id } = await buildPayout(account);
      const facts = { method: 'sepa_instant', amount: 1_051, currency: 'EUR', reference: 'r-1' };
      return ['/v1/payouts', { ...facts, recipient_id }];
    },
  } satisfies Record<Kind, (account: Account) => Promise<[path: string, body: object]>>;

  test.each<[Kind, ResourceCallback['name'][], object]>([
    ['payment', ['authorized', 'settled'], { history_events: 29, workflow_tasks: 4, actions: 13 }],
    ['refund', ['settled'], {}],
    ['payout', ['completed'], { history_events: 24, workflow_tasks: 3, actions: 11 }],
  ])('of a %s is what docs/scale.md says', async (kind, names, history) => {
    const { temporal, stores } = setting.service;
    const account = await buildAccount(setting.service, { funds: 10_000 });
    // Nobody listens there: the first attempt of each delivery ends at once.
    await buildEndpoint(account, { url: 'http://127.0.0.1:9/' });
    const [path, body] = await prepare[kind](account);
    await readFirstAttempts(account);
    // As under load, where one read serves many requests.
    await stores.accounts.refresh(account.account_id);
    await stores.routingRules.readCached();
    await stores.connectorPauses.readCached();
    await stores.endpoints.listCached(account.account_id, false);
    commands.clear();
    const created = await account.post(path, body);
    expect([created.status, created.text]).toEqual([201, expect.any(String)]);
    const { id } = created.body;
    const handle = temporal.workflow.getHandle(LIFECYCLES[kind].workflowId(id));
    for (const name of names) {
      const events = count('insert events');
      await bank.report(kind, id, name);
      // By the workflow, which reads nothing.
      await eventually(name, async () => count('insert events') > events);
    }
    await handle.result();
    const expected = readTable(kind);
    const attempts = expected['update deliveries'] ?? 0;
    await eventually('the attempts', async () => count('update deliveries') >= attempts);
    const counted = Object.fromEntries(commands);
    // They would try again after 42 s, and be counted by another try of a test.
    const terminate = ({ event_id }: DeliveryRow) =>
      temporal.workflow.getHandle(webhookWorkflowId(event_id)).terminate('end of test');
    await Promise.all((await readFirstAttempts(account)).map(terminate));

    expect(counted).toEqual(expected);
    expect(await countHistories(temporal, [[handle.workflowId]])).toMatchObject(history);
  });
});

const FUTURE = '2126-03-01T12:00:00.000Z';
const PAST = '2026-03-01T12:00:00.000Z';

const database = useDatabase();
const server = useRealServer();
const payouts = () => database.db.collection<PayoutDocument>('payouts');

function buildActivities(
  stores: Stores = database.stores,
  more: { walkMs?: number; temporal?: Client } = {},
) {
  return createAuditActivities({
    ...{ stores, temporal: server.env.client, now: () => new Date(), ...more },
    ...{ lifecycleQueue: 'unused', webhookQueue: 'unused' },
    log: { info: () => undefined, warn: () => undefined },
  });
}

/** Runs an activity of the audit. */
function openEnvironment() {
  const heartbeats: unknown[] = [];
  const environment = mockActivityEnvironment();
  environment.on('heartbeat', (details: unknown) => heartbeats.push(structuredClone(details)));
  return { environment, heartbeats };
}

// First, while there are no payouts.
describe('an activity', () => {
  const COUNT = 3;

  test('sends a heartbeat for each callback that it audits, also for one that it parks', async () => {
    for (let n = 0; n < COUNT; n += 1) {
      await database.stores.callbacks.insertOnce({
        ...{ connector: 'sandbox', resource: 'payout', resource_id: randomUUID(), name: 'sent' },
        body: { callback_id: `C${n}`, occurred_at: PAST },
        received_at: PAST,
      });
    }
    const { environment, heartbeats } = openEnvironment();
    const result = await environment.run(buildActivities().auditCallbacks);
    expect(result).toMatchObject({ delivered: 0, waiting: 0, parked: COUNT });
    expect(heartbeats).toHaveLength(COUNT);
  });

  test('sends a heartbeat for each late reversal, with the place from which a retry continues', async () => {
    const { environment, heartbeats } = openEnvironment();
    const heartbeatsBefore: number[] = [];
    const payments: Stores['payments'] = {
      ...database.stores.payments,
      listSentBack: async function* () {
        for (let n = 0; n < COUNT; n += 1) yield paymentAt(n, PAST);
      },
      markAttention: async () => {
        heartbeatsBefore.push(heartbeats.length);
        return true;
      },
    };
    const keepLate = async (ids: readonly string[]) => [...ids];
    const movements: Stores['movements'] = { ...database.stores.movements, keepLate };
    const { auditResources } = buildActivities({ ...database.stores, payments, movements });
    await environment.run(auditResources);
    expect(heartbeatsBefore).toHaveLength(COUNT);
    expect(new Set(heartbeatsBefore).size).toBe(COUNT);
    const place = { part: 'everything', began_at_ms: expect.any(Number), orphans: [] };
    expect(heartbeats.slice(-COUNT)).toEqual(Array(COUNT).fill(expect.objectContaining(place)));
  });

  test('that audits deliveries, also by an advanced clock, goes on after those that cannot be tried again, and counts them', async () => {
    const DAY_MS = 24 * 60 * MINUTE_MS;
    await database.db
      .collection<{ _id: string; clock: StoredClock }>('accounts')
      .insertOne({ _id: 'acct_late', clock: { offset_ms: 10 * DAY_MS } });
    const later = new Date(Date.now() + 5 * DAY_MS).toISOString();
    const owner = { account_id: 'acct_late', livemode: false, type: 'payment.settled' } as const;
    const rows = Array.from({ length: COUNT }, (_, n): DeliveryRow => {
      const event = { event_id: `evt_${n}`, endpoint_id: 'we_1', resource_id: 'pay_1' };
      const state = { status: 'pending', attempts: 1, run: 0 } as const;
      const next_attempt_at = n === 0 ? later : PAST;
      return { _id: `${n}`, ...owner, ...event, position: `${n}`, ...state, next_attempt_at };
    });
    await database.db.collection<DeliveryRow>('deliveries').insertMany(rows);
    const running = { status: { name: 'RUNNING' }, raw: { pendingWorkflowTask: {} } };
    const temporal: Client = Object.create(server.env.client, {
      workflow: { value: { getHandle: () => ({ describe: async () => running }) } },
      // Such as a server without this call.
      workflowService: { value: { resetActivity: () => Promise.reject(new Error('unknown')) } },
    });
    const { environment } = openEnvironment();
    const { auditDeliveries } = buildActivities(database.stores, { temporal });
    const result = await environment.run(auditDeliveries);
    expect(result).toEqual({ checked: COUNT, restarted: 0, failed: COUNT, named: [] });
  });

  test('that advances a sandbox clock ends when its worker stops, though no workflow answers', async () => {
    const offset = { account_id: 'acct_clock', offset_ms: 60_000 };
    await payouts().insertOne(storedPayout(offset, { status: 'submitted' }));
    const environment = mockActivityEnvironment();
    const withDeadline = () => {
      environment.cancel();
      return new Promise(() => undefined);
    };
    const silent = { withDeadline: { value: withDeadline } };
    const temporal: Client = Object.create(server.env.client, silent);
    const deps = { stores: database.stores, temporal, now: () => new Date() };
    const advance = { ...offset, until_ms: 60_000, asks: [], walk: {} };
    const run = environment.run(() => createClockActivities(deps).advanceResources(advance));
    await expect(run).rejects.toBeInstanceOf(CancelledFailure);
  });
});

describe('an audit of payouts in progress without a workflow', () => {
  const PAGE = 200;
  const name = (n: number) => `payout-${`${n}`.padStart(4, '0')}`;

  /** Inserts payouts, of which the last is overdue. @returns its id */
  async function insertPayouts(count: number): Promise<string> {
    await payouts().deleteMany({});
    await database.db.collection('schedule_runs').deleteMany({});
    const rows = Array.from({ length: count }, (_, n) => {
      const of = { _id: name(n), status: 'submitted', due_at: n === count - 1 ? PAST : FUTURE };
      return storedPayout({ account_id: 'acct_audit' }, of as Partial<PayoutDocument>);
    });
    await payouts().insertMany(rows);
    return name(count - 1);
  }

  const openWorker = async (taskQueue: string, more: { walkMs?: number } = {}) =>
    await Worker.create({
      connection: server.env.nativeConnection,
      taskQueue,
      workflowBundle: (await workflowBundles()).lifecycle,
      activities: buildActivities(database.stores, more),
    });

  const openQueue = () => `audit-${randomUUID()}`;
  const readOrphans = async (taskQueue: string) => {
    const options = { taskQueue, workflowId: openQueue() };
    const { workflow } = server.env.client;
    return (await workflow.execute<() => Promise<AuditResult>>('audit', options)).orphans;
  };

  /** Builds stores that note each page of payouts, and hang at the one after `last`. */
  function watchPages(last = '~') {
    const pages: string[] = [];
    let isStuck: () => void = () => undefined;
    const stuck = new Promise<void>((resolve) => {
      isStuck = resolve;
    });
    const inFlight: Stores['payouts']['inFlight'] = (after, limit) => {
      const cursor = database.stores.payouts.inFlight(after, limit);
      pages.push(after);
      const isOverduePart = pages.filter((page) => page === '').length < 2;
      if (isOverduePart || after < last) return cursor;
      isStuck();
      cursor.toArray = () => new Promise<never>(() => undefined);
      return cursor;
    };
    const watched = { ...database.stores.payouts, inFlight };
    return { stores: { ...database.stores, payouts: watched }, pages, stuck };
  }

  test('whose worker is killed continues from the page of its last heartbeat', async () => {
    const overdue = await insertPayouts(3 * PAGE);
    const [first = '', ...others] = [1, 2, 3].map((pages) => name(pages * PAGE - 1));
    const killed = watchPages(first);
    const { environment, heartbeats } = openEnvironment();
    void environment.run(buildActivities(killed.stores).auditResources);
    await killed.stuck;
    const heartbeatDetails = heartbeats.at(-1);
    expect(heartbeatDetails).toMatchObject({ part: 'everything', place: { after: first } });
    const next = watchPages();
    const { auditResources } = buildActivities(next.stores);
    const orphans: OrphanFindings = await mockActivityEnvironment({ heartbeatDetails }).run(
      auditResources,
    );
    // It looks neither at what is overdue again, nor at the first page.
    expect(next.pages).toEqual([first, ...others]);
    expect(orphans).toMatchObject({ checked: 3 * PAGE, found: 3 * PAGE });
    expect(orphans.named[0]).toBe(`payout:${overdue}`);
    // A killed worker's later progress is repeated.
    expect(WORKER_OPTIONS.maxHeartbeatThrottleInterval).toBe('10s');
  });

  const FEW = 50;

  test('checks in each run what is overdue and a part of the rest, and names what others found', async () => {
    const overdue = await insertPayouts(FEW);
    const taskQueue = openQueue();
    await runWhile(await openWorker(taskQueue, { walkMs: 0 }), async () => {
      const runs = [await readOrphans(taskQueue)];
      while (runs.at(-1)?.walked_at === null && runs.length < FEW) {
        runs.push(await readOrphans(taskQueue));
      }
      const counts = runs.map((each) => each.found);
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
      expect(runs[0]?.named[0]).toBe(`payout:${overdue}`);
      expect(counts.at(-1)).toBe(FEW);
      expect(runs.length).toBeGreaterThan(2);
      const { scheduleRuns } = database.stores;
      expect(await scheduleRuns.readWalk()).toMatchObject({ place: null });
      const names = (await scheduleRuns.list()).map(({ schedule }) => schedule);
      expect(names.sort()).toEqual(['audit', 'audit_walk']);
    });
  });

  test('reports no orphan that has ended since', async () => {
    const overdue = await insertPayouts(FEW);
    const taskQueue = openQueue();
    await runWhile(await openWorker(taskQueue), async () => {
      expect((await readOrphans(taskQueue)).found).toBe(FEW);
      await payouts().updateMany({ due_at: FUTURE }, { $set: { status: 'completed' } });
      const left = { found: 1, named: [`payout:${overdue}`] };
      expect(await readOrphans(taskQueue)).toMatchObject(left);
      expect((await database.stores.scheduleRuns.readWalk()).orphans).toHaveLength(1);
    });
  });
});
