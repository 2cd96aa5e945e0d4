import { randomUUID } from 'node:crypto';
import { deliverCallback } from '../../src/callbacks/deliver';
import { omitUndefined } from '../../src/domain/defined';
import { environmentQueue } from '../../src/domain/task-queues';
import { findOrphans, type Orphan, restart } from '../../src/service/orphans';
import { formatPlace, type Place, readPlace } from '../../src/service/reconcile/places';
import { walk } from '../../src/service/reconcile/walk';
import { storedPayout } from '../api/payout-setting';
import { eventually } from '../support/http';
import { useResourceSetting } from './resource-setting';

// Alone: `reconcile` and `orphan` compare whole stores, and restart what others have stopped.
const setting = useResourceSetting({ alone: true });

const SINCE = ['--since', '2026-01-01T00:00:00Z'];
const NONE = { data: [], has_more: false, checked: expect.any(Number) };

describe('reconcile', () => {
  test('says that two stores agree, with exit code 0', async () => {
    const { exit, stdout, stderr } = await setting.cli('reconcile', '--json');
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      data: {
        since: expect.stringMatching(/Z$/),
        workflows: expect.any(Number),
        histories: 0,
        documents: 0,
        left: 0,
        findings: [],
      },
    });
    expect((await setting.cli('reconcile', ...SINCE)).stdout).toMatch(
      /^\d+ workflows that run or ended since 2026-01-01T00:00:00\.000Z \(0 histories read\), and 0 documents in flight: nothing differs\.\n$/,
    );
  });

  test('lists differences with what --apply would do, with exit code 1, and does it with --apply', async () => {
    const { db, stores } = setting.deps;
    const created_at = '2026-01-01T00:00:00.000Z';
    const lost = storedPayout(setting.shop, { created_at });
    await db.collection<{ _id: string }>('payouts').insertOne(lost);
    const body = { callback_id: 'cb-9', occurred_at: created_at };
    const about = { connector: 'bank', resource: 'payout', name: 'completed' } as const;
    await stores.callbacks.insertOnce({
      ...about,
      resource_id: 'unknown',
      body,
      received_at: created_at,
    });

    const { exit, stdout, stderr } = await setting.cli('reconcile', '--json', ...SINCE);
    expect(exit).toBe(1);
    expect(JSON.parse(stderr).error).toEqual({
      code: 'stores_differ',
      message: 'Differences left: 1. Run it again with --apply.',
    });
    const age_seconds = expect.any(Number);
    const { data } = JSON.parse(stdout);
    expect(data).toMatchObject({ left: 1, documents: 1 });
    expect(data.findings).toEqual([
      {
        ...{ kind: 'orphan', resource: 'payout', id: lost._id, env: 'sandbox' },
        ...{ account_id: setting.shop.account_id, document: 'sent', workflow: 'not found' },
        ...{ age_seconds, act: 'restart', done: false },
      },
      {
        ...{ kind: 'callback', resource: 'payout', id: 'unknown', env: null, account_id: null },
        ...{ document: 'completed (bank:cb-9), not signalled', workflow: null },
        ...{ age_seconds, act: 'none', done: false },
      },
    ]);
    const inWords = await setting.cli('reconcile', ...SINCE);
    expect(inWords.exit).toBe(1);
    expect(inWords.stdout).toMatch(
      /\n\nKIND +RESOURCE +ID +ENV +MONGODB +TEMPORAL +AGE +ACT\norphan +payout +\S+ +sandbox +sent +not found +\d+ d \d+ h +restart\n/,
    );

    const applied = await setting.cli('reconcile', '--apply', '--json', ...SINCE);
    expect(applied.exit).toBe(0);
    expect(JSON.parse(applied.stdout).data).toMatchObject({
      left: 0,
      findings: [{ kind: 'orphan', done: true }, { kind: 'callback' }],
    });
    expect((await setting.handle('payout', lost._id).describe()).status.name).toBe('RUNNING');
    // Nobody works on the product's own queue here.
    await setting.terminate('payout', lost._id);
    await db.collection<{ _id: string }>('payouts').deleteOne({ _id: lost._id });
  });

  test('delivers an event that no workflow delivers', async () => {
    const { db } = setting.deps;
    const id = await setting.payout();
    const events = db.collection<{ _id: string; resource_id: string }>('events');
    const pending = { 'delivery.status': 'pending', 'delivery.next_attempt_at': null };
    const [event] = await events.find({ resource_id: id }).toArray();
    if (event === undefined) throw new Error('no event');
    await events.updateOne({ _id: event._id }, { $set: pending });
    const undelivered = { kind: 'undelivered', resource: 'event', id: event._id, act: 'deliver' };
    const look = async (...args: string[]) => {
      const { stdout } = await setting.cli('reconcile', '--json', ...SINCE, ...args);
      return JSON.parse(stdout).data.findings;
    };
    expect(await look()).toContainEqual(expect.objectContaining({ ...undelivered, done: false }));
    expect(await look('--apply')).toContainEqual(
      expect.objectContaining({ ...undelivered, done: true }),
    );
    const delivery = setting.service.temporal.workflow.getHandle(`webhook:${event._id}`);
    expect((await delivery.describe()).status.name).toBe('RUNNING');
    await delivery.terminate('in a test');
    await events.deleteMany({ resource_id: id });
  });

  test('compares a large kind by the first digits of its ids, and continues at any of them', async () => {
    const id = await setting.payout();
    const others = [await setting.payout(), await setting.payout()];
    const payouts = setting.deps.db.collection<{ _id: string }>('payouts');
    await payouts.updateOne({ _id: id }, { $inc: { version: -1 } });
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
    expect(whole.found).toEqual([id]);
    expect(parts.found).toEqual([id]);
    expect(whole.places).toContain('payout');
    expect(parts.places).toContain(`payout:${id.slice(0, 1)}`);

    const last = readPlace(parts.places.at(-1) ?? '');
    const rest = await look(1, last);
    expect(rest.places).toEqual(parts.places.slice(-1));
    expect(rest.checked).toBeLessThan(parts.checked);
    // The count has changed since, and with it the length of the first digits.
    expect((await look(undefined, last)).found).toEqual([id]);
    await payouts.updateOne({ _id: id }, { $inc: { version: 1 } });
  });

  test('compares a running workflow once', async () => {
    const look = async () => {
      let checked = 0;
      for await (const step of walk(setting.deps, { since: new Date(0) })) {
        if (step.place.kind === 'payout') checked += step.checked;
      }
      return checked;
    };
    const { temporal } = setting.service;
    const queue = environmentQueue(setting.deps.lifecycleQueue, false);
    const listed = async () =>
      (await temporal.workflow.count(`WorkflowType = 'payout' AND TaskQueue = '${queue}'`)).count;
    const id = await setting.payout({ amount: 66_623 });
    // Temporal lists a run some time after it has begun.
    await eventually('it in the list', async () => {
      const query = `WorkflowId = 'payout:${id}' AND ExecutionStatus = 'Running'`;
      return (await temporal.workflow.count(query)).count === 1;
    });
    expect(await look()).toBe(await listed());
  });

  test('--from takes a place, and is refused with --apply', async () => {
    for (const place of ['payment:xy', 'shop', 'payment:123']) {
      const { stderr } = await setting.cli('reconcile', '--from', place, '--json');
      expect(JSON.parse(stderr).error).toMatchObject({ code: 'invalid_usage' });
    }
    const refused = await setting.refusal('reconcile', '--from', 'payout:3f', '--apply');
    expect(refused).toMatchObject({ code: 'invalid_request' });
    const found = await setting.json('reconcile', '--from', 'payout:3f');
    expect(found).toMatchObject({ data: { left: 0 } });
  });

  test.each(['now', '2026-03-01T09:00:00', '2026-02-30'])(
    '--since takes a day or a time with an offset, and not %s',
    async (since) => {
      const { stderr } = await setting.cli('reconcile', '--since', since, '--json');
      expect(JSON.parse(stderr).error).toMatchObject({ code: 'invalid_usage' });
    },
  );
});

describe('orphan', () => {
  const buildRow = (resource: string, id: string, status: string, workflow: string) => ({
    resource,
    id,
    account_id: setting.shop.account_id,
    env: 'sandbox',
    status,
    workflow,
    updated_at: expect.stringMatching(/Z$/),
    age_seconds: expect.any(Number),
  });

  /** Finds orphans among these ids only, since other tests leave their own behind. */
  async function findAmong(ids: string[]): Promise<Orphan[]> {
    const found: Orphan[] = [];
    for await (const { orphans } of findOrphans(setting.deps, ids)) found.push(...orphans);
    return found;
  }

  test('list shows what was terminated, with its age, and neither what runs nor what has ended', async () => {
    const running = [
      await setting.payout({ amount: 66_623 }),
      (await setting.refund()).id,
      await setting.payment(),
    ];
    expect(await setting.json('orphan', 'list')).toEqual(NONE);
    const { stdout } = await setting.cli('orphan', 'list');
    expect(stdout).toMatch(/^All \d+ in flight have a workflow that runs\.\n$/);

    const [payout = '', refund = '', payment = ''] = running;
    await setting.terminate('payout', payout);
    await setting.terminate('refund', refund);
    await setting.terminate('payment', payment);
    const lost = storedPayout(setting.shop, { created_at: '2026-01-01T00:00:00.000Z' });
    await setting.deps.db.collection<{ _id: string }>('payouts').insertOne(lost);
    expect(await setting.json('orphan', 'list')).toEqual({
      ...NONE,
      data: expect.arrayContaining([
        buildRow('payment', payment, 'awaiting_customer', 'TERMINATED'),
        buildRow('refund', refund, 'processing', 'TERMINATED'),
        buildRow('payout', payout, 'sent', 'TERMINATED'),
        buildRow('payout', lost._id, 'sent', 'NOT_FOUND'),
      ]),
    });
    const inWords = (await setting.cli('orphan', 'list')).stdout;
    expect(inWords).toMatch(/^RESOURCE +ID +ENV +STATUS +SINCE +AGE +WORKFLOW +ACCOUNT\n/);
    expect(inWords).toMatch(
      /\npayout +\S+ +sandbox +sent +2026-01-01 00:00:00 UTC +\d+ d \d+ h +not found/,
    );
    expect(await setting.json('orphan', 'list', '--limit', '1')).toMatchObject({ has_more: true });

    for (const orphan of await findAmong([...running, lost._id])) {
      await restart(setting.deps, orphan);
    }
    expect(await setting.json('orphan', 'list')).toEqual(NONE);
  });

  test('crypto payments and settlements are listed, and continue where they were', async () => {
    const { stores } = setting.service;
    await setting.registerWallet('0x52908400098527886E0F7030069857D2E4169EE7');
    const paid = await setting.cryptoPayment();
    await setting.simulate('crypto_payment', paid, { event: 'received' });
    await setting.handle('crypto_payment', paid).result();
    const payment = await setting.cryptoPayment();
    await setting.simulate('crypto_payment', payment, { amount: '7', confirmations: 1 });
    const transaction_id = await eventually('the deposit', async () => {
      return (await stores.crypto_payments.get(payment))?.deposits[0]?.transaction_id;
    });
    // Sent, and nothing more is heard of it.
    const settlement = await setting.cryptoSettlement('66643');
    await setting.service.becomes('crypto_settlements', settlement, { status: 'sent' });
    await setting.terminate('crypto_payment', payment);
    await setting.terminate('crypto_settlement', settlement);
    expect(await setting.json('orphan', 'list')).toEqual({
      ...NONE,
      data: expect.arrayContaining([
        buildRow('crypto_payment', payment, 'awaiting_deposit', 'TERMINATED'),
        buildRow('crypto_settlement', settlement, 'sent', 'TERMINATED'),
      ]),
    });
    for (const orphan of await findAmong([payment, settlement])) {
      await restart(setting.deps, orphan);
    }
    expect(await setting.json('orphan', 'list')).toEqual(NONE);
    await setting.simulate('crypto_payment', payment, { transaction_id });
    await setting.service.becomes('crypto_payments', payment, { status: 'underpaid' });
    await setting.simulate('crypto_payment', payment, { event: 'received' });
    await setting.simulate('crypto_settlement', settlement, { event: 'completed' });
    await setting.handle('crypto_payment', payment).result();
    await setting.handle('crypto_settlement', settlement).result();
    const kinds = async (id: string) =>
      (await stores.ledger.forResource(id)).map(({ kind }) => kind).sort();
    expect(await kinds(payment)).toEqual(['crypto_payment_credited', 'crypto_payment_credited']);
    expect(await kinds(settlement)).toEqual([
      'crypto_settlement_captured',
      'crypto_settlement_reserved',
    ]);
  });

  test('a restarted payout continues where it was', async () => {
    const id = await setting.payout({ amount: 66_623 });
    await setting.terminate('payout', id);
    const [orphan] = await findAmong([id]);
    if (orphan === undefined) throw new Error('not found');
    await restart(setting.deps, orphan);
    await restart(setting.deps, orphan); // joins the one that runs
    const { stores } = setting.service;
    await setting.service.becomes('payouts', id, { attention: 'restarted_in_flight' });
    await setting.simulate('payout', id, { event: 'completed' });
    await setting.service.becomes('payouts', id, { status: 'completed' });
    expect((await stores.ledger.forResource(id)).map(({ kind }) => kind).sort()).toEqual([
      'payout_captured',
      'payout_reserved',
    ]);
  });

  test('restart takes all or the named ones, and leaves out a record that is behind its workflow', async () => {
    const [first, second, third] = [
      await setting.payout({ amount: 66_623 }),
      await setting.payout({ amount: 66_623 }),
      await setting.payout({ amount: 66_623 }),
    ];
    await setting.terminate('payout', first);
    await setting.terminate('payout', second);
    const act = ['payout', 'act', third, 'mark_completed', '--operator', 'm', '--reason', 'r'];
    await setting.json(...act);
    await setting.handle('payout', third).result();
    // As a restored database has it.
    const payouts = setting.deps.db.collection<{ _id: string }>('payouts');
    await payouts.updateOne({ _id: third }, { $set: { status: 'sent', version: 3 } });

    expect(await setting.json('orphan', 'restart', first)).toMatchObject({
      data: [buildRow('payout', first, 'sent', 'TERMINATED')],
      left_alone: [],
    });
    expect((await setting.handle('payout', first).describe()).status.name).toBe('RUNNING');
    expect(await setting.json('orphan', 'restart')).toMatchObject({
      data: [buildRow('payout', second, 'sent', 'TERMINATED')],
      left_alone: [buildRow('payout', third, 'sent', 'COMPLETED')],
    });
    const { stdout } = await setting.cli('orphan', 'restart');
    expect(stdout).toMatch(
      /^Started again: 0\.\n\nLeft alone, since their workflow has completed:\n/,
    );
    const behind = { code: 'record_behind', message: expect.stringContaining('at version 4') };
    expect(await setting.refusal('orphan', 'restart', third)).toEqual(behind);
    const reason = ['--operator', 'm', '--reason', 'the bank says so'];
    expect(await setting.refusal('payout', 'act', third, 'mark_failed', ...reason)).toEqual(behind);
    const occurred_at = new Date().toISOString();
    const report = {
      connector: setting.service.connector,
      ...({ resource: 'payout', name: 'failed' } as const),
      resource_id: third,
      callback: { callback_id: `cb_${third}`, occurred_at },
    };
    await expect(deliverCallback(setting.deps, report)).rejects.toMatchObject(behind);
    const { attention, status } = (await setting.service.stores.payouts.get(third)) ?? {};
    expect({ attention, status }).toEqual({ attention: 'record_behind', status: 'sent' });
    // Nobody works on the product's own queue here.
    for (const id of [first, second]) await setting.terminate('payout', id);
    await payouts.deleteMany({ _id: { $in: [first, second, third] } });
  });

  test('restart refuses by name what is no orphan', async () => {
    const running = await setting.payout({ amount: 66_623 });
    const unknown = randomUUID();
    expect(await setting.refusal('orphan', 'restart', running, unknown)).toEqual({
      code: 'not_an_orphan',
      message: `Not in progress, or with a running workflow: ${running}, ${unknown}.`,
    });
  });

  test('a long list reports its progress on stderr, and nothing there with --json', async () => {
    const payouts = setting.deps.db.collection<{ _id: string }>('payouts');
    const many = Array.from({ length: 1_010 }, (_, n) =>
      storedPayout(setting.shop, { created_at: new Date(Date.UTC(2026, 0, 1) + n).toISOString() }),
    );
    await payouts.insertMany(many);
    const { exit, stdout, stderr } = await setting.cli('orphan', 'list', '--limit', '10000');
    expect(exit).toBe(0);
    expect(stdout.split('\n').length).toBeGreaterThan(1_010);
    expect(stderr).toMatch(/^10\d\d checked, \d+ without a workflow so far\n$/);
    expect((await setting.cli('orphan', 'list', '--json')).stderr).toBe('');
    await payouts.deleteMany({ _id: { $in: many.map(({ _id }) => _id) } });
  });
});

test('callback deliver --again delivers a signal that Temporal lost, and none that was applied', async () => {
  const { callbacks } = setting.service.stores;
  const id = await setting.payout({ amount: 66_623 });
  const store = (resource_id: string, day: number) =>
    callbacks.insertOnce({
      ...{ connector: setting.service.connector, resource: 'payout', resource_id },
      ...{ name: 'completed', received_at: `2026-03-0${day}T12:00:00.000Z` },
      body: { callback_id: `cb_${randomUUID()}`, occurred_at: '2026-03-01T12:00:00.000Z' },
    });
  const [lost, old] = [await store(id, 3), await store(randomUUID(), 1)];
  for (const { _id } of [lost, old]) {
    await callbacks.markSignalled({ _id }, '2026-03-01T12:00:00.000Z');
  }
  const again = ['callback', 'deliver', '--again', '--since', '2026-03-02T00:00:00Z'];
  expect(await setting.json(...again)).toEqual({ delivered: [lost._id], failed: [] });
  await setting.service.becomes('payouts', id, { status: 'completed' });
  expect(await setting.json(...again)).toEqual({ delivered: [], failed: [] });
  expect(await setting.refusal('callback', 'deliver', '--again')).toMatchObject({
    code: 'invalid_request',
  });
});
