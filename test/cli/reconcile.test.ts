import { omitUndefined } from '../../src/domain/defined';
import { environmentQueue } from '../../src/domain/task-queues';
import { formatPlace, type Place, readPlace } from '../../src/service/reconcile/places';
import { walk } from '../../src/service/reconcile/walk';
import { storedPayout } from '../api/payout-setting';
import { eventually } from '../support/http';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

const SINCE = ['--since', '2026-01-01T00:00:00Z'];

test('two stores that agree are told so, with exit code 0', async () => {
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

test('differences are listed with what would be done, with exit code 1', async () => {
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

test('an event that nothing delivers is delivered', async () => {
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

test('a large kind is compared by the first digits of its ids, and goes on at any of them', async () => {
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

test('a workflow that runs is compared once', async () => {
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

test('--from takes a place, and only looks', async () => {
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
  '--since takes a day or a time with an offset, not %s',
  async (since) => {
    const { stderr } = await setting.cli('reconcile', '--since', since, '--json');
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'invalid_usage' });
  },
);
