import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { CallbackResource } from '../../src/domain/banks/callback';
import { omitUndefined } from '../../src/domain/defined';
import { webhookWorkflowId } from '../../src/domain/events/event';
import { FORMAT } from '../../src/domain/format';
import { environmentQueue } from '../../src/domain/task-queues';
import {
  advanceEpoch,
  type EpochDeps,
  type EpochGuard,
  readEpochs,
  watchEpochs,
} from '../../src/service/installation/epoch';
import {
  formatPlace,
  type Place,
  readPlace,
  walk,
} from '../../src/service/operators/reconcile/walk';
import { buildDelivery } from '../../src/store/deliveries';
import { rebuiltRecordKey } from '../../src/store/idempotency';
import { storedPayout } from '../api/payout-setting';
import { eventually } from '../support/eventually';
import { buildPayout } from '../support/factories';
import { readPayloads } from '../support/histories';
import { createClient, idealPayment } from '../support/http';
import { recordEvents } from './event-log';
import { useResourceSetting } from './resource-setting';

const prefix = `stores-${randomUUID().slice(0, 8)}`;
// Of its own: the commands compare whole stores, restart what others have stopped, and refuse writes.
const setting = useResourceSetting({ live: { connectors: '', prefix } });

const SINCE = ['--since', '2026-01-01T00:00:00Z'];
/** The bank sends it and says no more; it is not overdue before the next business day. */
const SILENT = { amount: 66_623, method: 'sepa_credit_transfer' };
const LONG_AGO = '2026-01-01T00:00:00.000Z';
const payouts = () => setting.service.collection<{ _id: string }>('payouts');
const reconcile = async (...args: string[]) => {
  const { exit, stdout, stderr } = await setting.cli('reconcile', '--json', ...args);
  return { exit, stderr, data: JSON.parse(stdout).data };
};

// First, while the stores agree.
describe('the guard against a restored store', () => {
  const createDeps = (): EpochDeps => {
    const { stores, temporal, now } = setting.deps;
    return { epoch: stores.epoch, temporal, lifecycleQueue: setting.idleQueue, now };
  };
  const advance = async (changes: Partial<EpochDeps> = {}) =>
    advanceEpoch({ ...createDeps(), ...changes }, await readEpochs(createDeps()));
  const epochs = () => setting.service.collection<{ _id: string }>('service_epoch');
  /** Makes MongoDB as old as a backup. */
  const restore = () => epochs().updateOne({ _id: 'epoch' }, { $set: { at: LONG_AGO } });
  /** Makes it as `migrate` does. */
  const reset = () =>
    epochs().replaceOne(
      { _id: 'epoch' },
      { installation: randomUUID(), format: FORMAT, at: new Date(0).toISOString() },
      { upsert: true },
    );
  /** Time before the second result of a process that has none, and sooner than between later ones. */
  const SOON_MS = 12_000;

  const guards: EpochGuard[] = [];
  /** Watches both stores as a process does, until the test ends. */
  async function watch({
    advances = true,
    ...changes
  }: Partial<EpochDeps & { advances: boolean }> = {}) {
    const registry = new Registry();
    const lines: string[] = [];
    const write = (_: object, line: string) => void lines.push(line);
    const onBehind = jest.fn();
    const options = { registry, log: { warn: write, error: write }, advances, onBehind };
    const guard = await watchEpochs({ ...createDeps(), ...changes }, options);
    guards.push(guard);
    return { fault: guard.fault, lines, onBehind, metrics: () => registry.metrics() };
  }
  afterEach(async () => {
    for (const { close } of guards.splice(0)) close();
    await reset();
  });
  const NOT_COMPARED = 'MongoDB and Temporal are not compared';

  test('allows writes to a new database, and to one that agrees', async () => {
    expect((await watch({ advances: false })).fault()).toBeUndefined();
    for (const _ of [1, 2]) {
      const { fault, lines, metrics } = await watch();
      expect({ fault: fault(), lines }).toEqual({ fault: undefined, lines: [] });
      expect(await metrics()).toContain('payments_mongodb_behind_seconds 0');
    }
    expect((await setting.refusal('reconcile --done --reason r')).code).toBe('not_behind');
  });

  test('refuses writes after a restore of MongoDB until `reconcile` has run', async () => {
    await advance();
    await restore();
    const { fault, lines, onBehind, metrics } = await watch();
    expect(lines).toEqual([fault()]);
    expect(lines[0]).toContain(`MongoDB has the state of ${LONG_AGO}`);
    expect(onBehind).toHaveBeenCalledTimes(1);
    expect(await metrics()).toMatch(/payments_mongodb_behind_seconds [1-9]/);
    await setting.service.withApp({ epochs: { fault } }, async (url) => {
      const shop = createClient(url, setting.shop.key);
      const before = await setting.shop.count('idempotency_records');
      const { status, body } = await shop.post('/v1/payments', idealPayment(), { once: true });
      expect([status, body.error.code]).toEqual([503, 'temporarily_unavailable']);
      expect(body.error.message).toMatch(
        /^The service is being restored\. Try again, with the same/,
      );
      expect(await setting.shop.count('idempotency_records')).toBe(before);
      expect((await shop.get('/v1/payments')).status).toBe(200);
      for (const path of ['/dashboard/sign-in', '/connectors/sandbox/callbacks']) {
        expect((await fetch(`${url}${path}`, { method: 'POST' })).status).toBe(503);
      }
      const ready = await (await fetch(`${url}/readyz`)).json();
      expect(ready).toMatchObject({ missing: expect.arrayContaining(['reconciled']) });
    });
    // It stands in the database, so another process finds it too, and none moves it on.
    expect((await watch()).fault()).toBeDefined();
  });

  test('ends by `reconcile --apply` with an early --since, or by --done', async () => {
    await advance();
    await restore();
    const isBehind = async () => (await watch({ advances: false })).fault() !== undefined;
    await setting.json('reconcile');
    const refuse = async (since: string) =>
      (await setting.cli(`reconcile --apply --since ${since}T00:00:00Z`)).stderr;
    expect(await refuse('2026-01-02')).toContain(
      `MongoDB has the state of ${LONG_AGO}: --since must not be later`,
    );
    const { epoch, auditLog, idempotency } = setting.deps.stores;
    // A run that was interrupted has rebuilt a payout without its key.
    const resource_id = randomUUID();
    const owner = { account_id: setting.shop.account_id, livemode: false };
    const lost = { ...rebuiltRecordKey(owner, resource_id), fingerprint: '', resource_id };
    await idempotency.reserveKey({ ...lost, request: null, request_id: 'r' }, new Date());
    expect(await refuse('2025-12-31')).toMatch(/^Idempotency keys are lost.* --done/m);
    await setting.service.collection('idempotency_records').deleteOne({ resource_id });
    // Its record ends after a day.
    expect(await refuse('2025-12-31')).toMatch(/^Idempotency keys are lost.* --done/m);
    expect(await isBehind()).toBe(true);
    await epoch.noteLostKeys(false);
    await setting.json('reconcile --apply --since 2025-12-31T00:00:00Z');
    expect(await isBehind()).toBe(false);
    expect((await watch()).fault()).toBeUndefined();

    await restore();
    expect((await setting.refusal('reconcile --done')).code).toBe('invalid_request');
    const after = { mongodb: LONG_AGO, reason: 'two payouts are left, ticket 7' };
    const done = await setting.json('reconcile --done --reason', after.reason);
    expect(done).toMatchObject({ done: true, mongodb: LONG_AGO });
    expect(await isBehind()).toBe(false);
    const [line] = await auditLog.list({ limit: 1 });
    expect(line).toMatchObject({ act: 'stores.reconciled', after });
  });

  test('refuses writes until it could compare for the first time, which it tries soon', async () => {
    await advance();
    await restore();
    const { epoch } = createDeps();
    let isAway = true;
    const read = jest.fn(async () => {
      if (isAway) throw new Error('away');
      return await epoch.read();
    });
    const { fault, lines, onBehind } = await watch({ epoch: { ...epoch, read } });
    expect(fault()).toContain('not compared yet');
    expect(lines).toEqual([NOT_COMPARED]);
    isAway = false;
    const before = read.mock.calls.length;
    await eventually('the next look', async () => read.mock.calls.length > before, SOON_MS);
    // A busy Temporal may take longer than that to answer.
    await eventually('the first result', async () => fault()?.includes(LONG_AGO));
    expect(onBehind).toHaveBeenCalledTimes(1);
  });

  test('sees no restore while another process advances the epoch', async () => {
    await advance();
    const { epoch } = createDeps();
    const readEarlier = async () => {
      const stored = await epoch.read();
      return stored && { ...stored, at: LONG_AGO };
    };
    const read = jest.fn(epoch.read).mockImplementationOnce(readEarlier);
    const { fault, lines, onBehind } = await watch({ epoch: { ...epoch, read } });
    expect({ fault: fault(), lines }).toEqual({ fault: undefined, lines: [] });
    expect(onBehind).not.toHaveBeenCalled();
    expect(read).toHaveBeenCalledTimes(2);
  });

  test('allows writes though the epochs cannot be raised, or Temporal denies access to schedules', async () => {
    await advance();
    const raise = () => Promise.reject(new Error('denied'));
    const now = () => new Date(Date.now() + 86_400_000);
    // By the time of MongoDB: after a restore, a later one would be that of no process.
    await advance({ now });
    const { mongodb } = await readEpochs(createDeps());
    expect(Date.parse(mongodb ?? '')).toBeLessThan(Date.now() + 43_200_000);
    const raised = await watch({ now, epoch: { ...createDeps().epoch, raise } });
    const allowed = { fault: undefined, lines: [NOT_COMPARED] };
    expect({ fault: raised.fault(), lines: raised.lines }).toEqual(allowed);
    const grpc = { code: 7, details: 'Request unauthorized.', metadata: {} };
    const cause = Object.assign(new Error('denied'), grpc);
    const schedules = jest.spyOn(setting.deps.temporal.schedule, 'getHandle');
    schedules.mockImplementation(() => {
      throw new Error('Failed', { cause });
    });
    const { fault, lines } = await watch().finally(() => schedules.mockRestore());
    expect({ fault: fault(), lines }).toEqual(allowed);
  });

  test('logs the time since which a restored Temporal may have lost signals', async () => {
    await advance();
    const at = new Date(Date.now() + 3_600_000).toISOString();
    await epochs().updateOne({ _id: 'epoch' }, { $set: { at } });
    const { fault, lines } = await watch();
    expect(fault()).toBeUndefined();
    expect(lines).toEqual([expect.stringContaining('callback deliver --again --since 2')]);
  });
});

// What a rebuild writes is in test/service/reconcile.
describe('reconcile', () => {
  test('says that two stores agree, with exit code 0', async () => {
    const counts = { workflows: expect.any(Number), histories: 0, documents: 0, left: 0 };
    expect(await reconcile()).toEqual({
      ...{ exit: 0, stderr: '' },
      data: { ...counts, since: expect.stringMatching(/Z$/), findings: [] },
    });
    expect((await setting.cli('reconcile', ...SINCE)).stdout).toMatch(
      /^\d+ workflows that run or ended since 2026-01-01T00:00:00\.000Z \(0 read one by one\), and 0 documents in flight: nothing differs\.\n$/,
    );
    // A place that a run has named.
    const found = await setting.json('reconcile', '--from', 'payout:3f');
    expect(found).toMatchObject({ data: { left: 0 } });
  });

  test('lists differences with what --apply would do, with exit code 1, and does it with --apply', async () => {
    const { stores, temporal } = setting.service;
    const paid = await setting.payout();
    const events = setting.service.collection<{ _id: string; resource_id: string }>('events');
    const [event_id = ''] = await events.distinct('_id', { resource_id: paid });
    const event = await stores.events.get(event_id);
    if (event === null) throw new Error('There is no event.');
    const row = buildDelivery(event, 'we_deleted', 'pending');
    await stores.deliveries.insert([{ ...row, next_attempt_at: null }]);
    const lost = storedPayout(setting.shop, { created_at: LONG_AGO });
    await payouts().insertOne(lost);
    const about = { connector: 'bank', resource: 'payout', name: 'completed' } as const;
    const body = { callback_id: 'cb-9', occurred_at: LONG_AGO };
    const callback = { ...about, resource_id: 'unknown', body, received_at: LONG_AGO };
    await stores.callbacks.insertOnce(callback);

    const { exit, data, stderr } = await reconcile(...SINCE);
    expect(exit).toBe(1);
    expect(JSON.parse(stderr).error).toEqual({
      code: 'stores_differ',
      message: 'Differences left: 2. Run it again with --apply.',
    });
    const common = { resource: 'payout', age_seconds: expect.any(Number), done: false };
    const { account_id } = setting.shop;
    expect(data).toMatchObject({ left: 2, documents: 2 });
    expect(data.findings).toEqual([
      {
        ...{ ...common, kind: 'orphan', id: lost._id, env: 'sandbox', act: 'restart' },
        ...{ account_id, document: 'sent', workflow: 'not found' },
      },
      expect.objectContaining({
        ...{ ...common, kind: 'undelivered', resource: 'event', id: event_id, act: 'deliver' },
      }),
      {
        ...{ ...common, kind: 'callback', id: 'unknown', env: null, account_id: null, act: 'none' },
        ...{ document: 'completed (bank:cb-9), not signalled', workflow: null },
      },
    ]);
    expect((await setting.cli('reconcile', ...SINCE)).stdout).toMatch(
      /\n\nKIND +RESOURCE +ID +ENV +MONGODB +TEMPORAL +AGE +ACT\norphan +payout +\S+ +sandbox +sent +not found +\d+ d \d+ h +restart\n/,
    );

    const done = ['orphan', 'undelivered'].map((kind) => ({ kind, done: true }));
    expect(await reconcile('--apply', ...SINCE)).toMatchObject({
      ...{ exit: 0, data: { left: 0, findings: [...done, { kind: 'callback' }] } },
    });
    expect((await setting.handle('payout', lost._id).describe()).status.name).toBe('RUNNING');
    await temporal.workflow.getHandle(webhookWorkflowId(event_id)).result();
    await events.deleteMany({ resource_id: paid });
    await setting.service.collection('deliveries').deleteMany({ resource_id: paid });
  });

  test('compares a large kind by the first digits of its ids, and continues at any of them', async () => {
    const id = await setting.payout();
    const others = [await setting.payout(), await setting.payout()];
    await payouts().updateOne({ _id: id }, { $inc: { version: -1 } });
    const look = async (runsMax?: number, from?: Place) => {
      const deps = { ...setting.deps, ...omitUndefined({ runsMax }) };
      const all = [];
      for await (const step of walk(deps, { since: new Date(0), from })) all.push(step);
      const checked = all.reduce((sum, step) => sum + step.checked, 0);
      const found = all.flatMap(({ differences }) => differences.map((each) => each.id));
      return { checked, found, places: [...new Set(all.map(({ place }) => formatPlace(place)))] };
    };
    // Temporal lists a run some time after it has begun.
    const [whole, parts] = await eventually('all in both lists', async () => {
      const [seen, inParts] = [await look(), await look(1)];
      return seen.checked > others.length && inParts.checked === seen.checked && [seen, inParts];
    });
    expect([whole.found, parts.found]).toEqual([[id], [id]]);
    expect(whole.places).toContain('payout');
    expect(parts.places).toContain(`payout:${id.slice(0, 1)}`);

    const last = readPlace(parts.places.at(-1) ?? '');
    const rest = await look(1, last);
    expect(rest.places).toEqual(parts.places.slice(-1));
    expect(rest.checked).toBeLessThan(parts.checked);
    // The count has changed since, and with it the length of the first digits.
    expect((await look(undefined, last)).found).toEqual([id]);
    await payouts().updateOne({ _id: id }, { $inc: { version: 1 } });
  });

  test('compares a running workflow once', async () => {
    const { workflow } = setting.service.temporal;
    const count = async (query: string) => (await workflow.count(query)).count;
    const id = await setting.payout(SILENT);
    const own = `WorkflowId = 'payout:${id}' AND ExecutionStatus = 'Running'`;
    // Temporal lists a run some time after it has begun.
    await eventually('it in the list', async () => (await count(own)) === 1);
    let checked = 0;
    for await (const step of walk(setting.deps, { since: new Date(0) })) {
      if (step.place.kind === 'payout') checked += step.checked;
    }
    const queue = environmentQueue(setting.deps.lifecycleQueue, false);
    expect(checked).toBe(await count(`WorkflowType = 'payout' AND TaskQueue = '${queue}'`));
  });
});

describe('orphan', () => {
  const NONE = { data: [], has_more: false, checked: expect.any(Number) };
  const buildRow = (resource: string, id: string, status: string, workflow = 'TERMINATED') => ({
    ...{ resource, id, account_id: setting.shop.account_id, env: 'sandbox', status, workflow },
    ...{ updated_at: expect.stringMatching(/Z$/), age_seconds: expect.any(Number) },
  });
  const list = (...options: string[]) => setting.json('orphan', 'list', ...options);
  const restart = (...ids: string[]) => setting.json('orphan', 'restart', ...ids);

  // How each kind goes on is in test/workflows.
  test('list shows what was terminated, with its age; restart starts each again', async () => {
    const { becomes } = setting.service;
    await setting.registerWallet();
    const paid = await setting.cryptoPayment();
    await setting.simulate('crypto_payment', paid, { event: 'received' });
    await setting.handle('crypto_payment', paid).result();
    // Sent, and nothing more is heard of it.
    const settlement = await setting.cryptoSettlement('66643');
    await becomes('crypto_settlements', settlement, { status: 'sent' });
    const payout = await setting.payout(SILENT);
    const running: [CallbackResource, string, string][] = [
      ['payment', await setting.payment(), 'awaiting_customer'],
      ['refund', (await setting.refund()).id, 'processing'],
      ['payout', payout, 'sent'],
      ['crypto_payment', await setting.cryptoPayment(), 'awaiting_deposit'],
      ['crypto_settlement', settlement, 'sent'],
    ];
    expect(await list()).toEqual(NONE);
    const { stdout } = await setting.cli('orphan', 'list');
    expect(stdout).toMatch(/^All \d+ in flight have a workflow that runs\.\n$/);

    for (const [kind, id] of running) await setting.terminate(kind, id);
    const lost = storedPayout(setting.shop, { created_at: LONG_AGO });
    await payouts().insertOne(lost);
    const rows = [
      ...running.map(([kind, id, status]) => buildRow(kind, id, status)),
      buildRow('payout', lost._id, 'sent', 'NOT_FOUND'),
    ];
    const data = expect.arrayContaining(rows);
    expect(await list()).toEqual({ ...NONE, data });
    const inWords = (await setting.cli('orphan', 'list')).stdout;
    expect(inWords).toMatch(/^RESOURCE +ID +ENV +STATUS +SINCE +AGE +WORKFLOW +ACCOUNT\n/);
    expect(inWords).toMatch(
      /\npayout +\S+ +sandbox +sent +2026-01-01 00:00:00 UTC +\d+ d \d+ h +not found/,
    );
    expect(await list('--limit', '1')).toMatchObject({ has_more: true });

    expect(await restart()).toEqual({ ...NONE, data, left_alone: [] });
    expect(await list()).toEqual(NONE);
    await becomes('payouts', payout, { attention: 'restarted_in_flight' });
    await setting.simulate('payout', payout, { event: 'completed' });
    await becomes('payouts', payout, { status: 'completed' });
  });

  test('restart takes the named ones, and leaves out a record that is behind its workflow', async () => {
    const named = await setting.payout(SILENT);
    await setting.terminate('payout', named);
    const { id: behind } = await buildPayout(setting.shop, { ...SILENT, status: 'completed' });
    await setting.handle('payout', behind).result();
    // As a restored database has it.
    await payouts().updateOne({ _id: behind }, { $set: { status: 'sent', version: 3 } });

    const row = buildRow('payout', named, 'sent');
    expect(await restart(named)).toMatchObject({ data: [row], left_alone: [] });
    expect((await setting.handle('payout', named).describe()).status.name).toBe('RUNNING');
    const left_alone = [buildRow('payout', behind, 'sent', 'COMPLETED')];
    expect(await restart()).toMatchObject({ data: [], left_alone });
    const { stdout } = await setting.cli('orphan', 'restart');
    expect(stdout).toMatch(
      /^Started again: 0\.\n\nLeft alone, since their workflow has completed:\n/,
    );
    const refusal = { code: 'record_behind', message: expect.stringContaining('at version 4') };
    expect(await setting.refusal('orphan', 'restart', behind)).toEqual(refusal);
    const act = ['payout', 'act', behind, 'mark_failed', '--operator', 'm', '--reason', 'r'];
    expect(await setting.refusal(...act)).toEqual(refusal);
    const callback = { callback_id: behind, occurred_at: LONG_AGO };
    const { connector, stores } = setting.service;
    const about = { connector, resource: 'payout', resource_id: behind, name: 'failed' } as const;
    await expect(deliverCallback(setting.deps, { ...about, callback })).rejects.toMatchObject(
      refusal,
    );
    const state = { attention: 'record_behind', status: 'sent' };
    expect(await stores.payouts.get(behind)).toMatchObject(state);
    await payouts().updateOne({ _id: behind }, { $set: { status: 'completed', version: 4 } });

    const unknown = randomUUID();
    expect(await setting.refusal('orphan', 'restart', named, unknown)).toEqual({
      code: 'not_an_orphan',
      message: `Not in progress, or with a running workflow: ${named}, ${unknown}.`,
    });
  });

  test('list and restart have a delivery that is late, once', async () => {
    const { account_id, service } = { ...setting.shop, service: setting.service };
    const DUE_AT = '2026-03-01T12:05:00.000Z';
    const events = await recordEvents(service, account_id, ['payment.settled', 'payment.failed']);
    const [id = '', current = ''] = events.map(({ _id }) => _id);
    const deliveries = service.collection('deliveries');
    const setState = (event_id: string, next_attempt_at: string) => {
      const delivery = { status: 'pending', attempts: 1, next_attempt_at };
      return deliveries.updateOne({ event_id }, { $set: delivery });
    };
    await setState(id, DUE_AT);
    await setState(current, new Date().toISOString());
    const row = buildRow('delivery', id, 'pending', 'NOT_FOUND');
    expect(await list()).toMatchObject({ data: [{ ...row, updated_at: DUE_AT }] });
    expect((await setting.cli('orphan', 'list')).stdout).toContain(`\ndelivery  ${id}  sandbox`);
    expect(await restart(id)).toMatchObject({ data: [row] });
    const { input } = await readPayloads(service.temporal, webhookWorkflowId(id));
    expect(input).toMatchObject({ endpoints: [{ run: 0, resume: true }] });
    await service.temporal.workflow.getHandle(webhookWorkflowId(id)).result();
    expect(await list()).toEqual(NONE);
    await deliveries.deleteOne({ event_id: current });
    await service.collection<{ _id: string }>('events').deleteOne({ _id: current });
  });

  test('list reports its progress on stderr if it is long', async () => {
    const many = Array.from({ length: 1_010 }, (_, n) =>
      storedPayout(setting.shop, { created_at: new Date(Date.UTC(2026, 0, 1) + n).toISOString() }),
    );
    await payouts().insertMany(many);
    const { stdout, stderr } = await setting.cli('orphan list --limit 10000');
    expect(stdout.split('\n').length).toBeGreaterThan(1_010);
    expect(stderr).toMatch(/^10\d\d checked, \d+ without a workflow so far\n$/);
    await payouts().deleteMany({ _id: { $in: many.map(({ _id }) => _id) } });
  });
});
