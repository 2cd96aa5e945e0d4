import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { deliverCallback, type ResourceCallback } from '../../src/callbacks/deliver';
import type { CallbackDocument, WaitingFilter } from '../../src/store/callbacks';
import { createMetricStore } from '../../src/store/metrics';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();
afterEach(async () => {
  await setting.deps.db.collection('bank_callbacks').deleteMany({});
});

const PARKED = 'no such refund at this connector';
const NO_CALLBACK = { data: [], has_more: false };
const OCCURRED_AT = '2026-03-01T12:00:00.000Z';

/** As it is kept when its connector dies before the signal. */
function keep(resource_id: string, { connector = setting.service.connector, day = 1 } = {}) {
  return setting.service.stores.callbacks.insertOnce({
    connector,
    resource: 'payout',
    resource_id,
    name: 'completed',
    body: { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT, reason: 'It arrived' },
    received_at: `2026-03-0${day}T12:00:00.000Z`,
  });
}

/** As it is kept when the bank speaks of what nobody knows. */
async function park(resource_id = randomUUID()) {
  const warned: [object, string][] = [];
  const log = { warn: (...line: [object, string]) => void warned.push(line) };
  const deps = { ...setting.deps, now: () => new Date(), log };
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT };
  const { connector } = setting.service;
  const report: ResourceCallback = {
    connector,
    resource: 'refund',
    resource_id,
    name: 'settled',
    callback,
  };
  expect(await deliverCallback(deps, report)).toBe('parked');
  return { id: `${connector}:${callback.callback_id}`, callback, warned };
}

const listed = async (...options: string[]) => await setting.json('callback', 'list', ...options);
const rowOf = ({ _id: id, connector, resource, resource_id, name }: CallbackDocument) =>
  expect.objectContaining({ id, connector, resource, resource_id, name, signalled_at: null });

test('one that was never signalled is listed, delivered once, and refused from then on', async () => {
  const id = await setting.payout({ amount: 66_623 });
  const kept = await keep(id);
  expect(await listed('--unsignalled')).toEqual({
    data: [
      {
        id: kept._id,
        connector: setting.service.connector,
        resource: 'payout',
        resource_id: id,
        name: 'completed',
        received_at: '2026-03-01T12:00:00.000Z',
        signalled_at: null,
        parked: null,
        unapplied: null,
        signed_by: null,
      },
    ],
    has_more: false,
  });
  expect(await setting.json('callback', 'deliver', kept._id)).toEqual({
    id: kept._id,
    status: 'delivered',
  });
  await setting.service.becomes('payouts', id, { status: 'completed' });
  expect(await setting.refusal('callback', 'deliver', kept._id)).toEqual({
    code: 'callback_signalled',
    message: `${kept._id} was signalled to its workflow: \`callback show ${kept._id}\` shows when.`,
  });
  expect(await listed()).toEqual(NO_CALLBACK);
  expect((await setting.cli('callback', 'list')).stdout).toBe('No callback waits.\n');
  const { stdout } = await setting.cli('callback', 'show', kept._id);
  expect(stdout).toMatch(/\nReason: +It arrived\n/);
  expect(stdout).toMatch(/\nOutcome: +signalled\n/);
});

test('one whose signal Temporal lost is delivered again, and those that were applied are not', async () => {
  const { callbacks } = setting.service.stores;
  const id = await setting.payout({ amount: 66_623 });
  const [lost, old] = [await keep(id, { day: 3 }), await keep(randomUUID(), { day: 1 })];
  for (const { _id } of [lost, old]) await callbacks.markSignalled({ _id }, OCCURRED_AT);
  const again = ['callback', 'deliver', '--again', '--since', '2026-03-02T00:00:00Z'];
  expect(await setting.json(...again)).toEqual({ delivered: [lost._id], failed: [] });
  await setting.service.becomes('payouts', id, { status: 'completed' });
  expect(await setting.json(...again)).toEqual({ delivered: [], failed: [] });
  expect(await setting.refusal('callback', 'deliver', '--again')).toMatchObject({
    code: 'invalid_request',
  });
});

test('a parked one stays so until its resource is there, and its connector is warned', async () => {
  const { id, callback, warned } = await park();
  expect(warned).toEqual([
    [
      {
        callback_id: callback.callback_id,
        connector: setting.service.connector,
        refund_id: expect.any(String),
        code: 'settled',
      },
      'callback parked',
    ],
  ]);
  const row = { id, parked: PARKED };
  expect(await listed('--parked')).toMatchObject({ data: [{ ...row, signalled_at: null }] });
  expect(await setting.json('callback', 'show', id)).toMatchObject({ ...row, callback });
  expect(await setting.json('callback', 'deliver', id)).toEqual({ id, status: 'parked' });
  const { stdout } = await setting.cli('callback', 'deliver', id);
  expect(stdout).toBe(`${id} stays parked: its connector still has no such resource.\n`);
});

test('the list is narrowed, and begins with the longest waiting', async () => {
  const other = await keep(randomUUID(), { connector: 'other', day: 3 });
  const second = await keep(randomUUID(), { day: 2 });
  const first = await keep(randomUUID());
  const { id: parked } = await park();
  const all = [rowOf(first), rowOf(second), rowOf(other)];
  expect(await listed()).toMatchObject({ data: [...all, { id: parked }], has_more: false });
  expect(await listed('--unsignalled')).toEqual({ data: all, has_more: false });
  expect(await listed('--parked')).toMatchObject({ data: [{ id: parked }] });
  expect(await listed('--connector', 'other')).toMatchObject({ data: [rowOf(other)] });
  expect(await listed('--resource-id', second.resource_id)).toMatchObject({
    data: [rowOf(second)],
  });
  expect(await listed('--limit', '1')).toEqual({ data: [rowOf(first)], has_more: true });
  const { stdout } = await setting.cli('callback', 'list', '--limit', '1');
  expect(stdout).toMatch(/^CALLBACK +RECEIVED +RESOURCE +ID +SAYS +WAITS\n/);
  expect(stdout).toMatch(/ payout +\S+ +completed +never signalled\n\nThere are more\.\n$/);
});

test('an unknown one and one that no connector may report are refused', async () => {
  expect(await setting.refusal('callback', 'show', 'sandbox:none')).toEqual({
    code: 'callback_not_found',
    message: 'There is no callback sandbox:none.',
  });
  expect((await setting.refusal('callback', 'deliver', 'sandbox:none')).code).toBe(
    'callback_not_found',
  );
  const { _id } = await keep('no id of ours');
  expect((await setting.refusal('callback', 'deliver', _id)).code).toBe('callback_unreadable');
});

test.each<WaitingFilter>([
  { waits: 'any' },
  { waits: 'parked', connector: 'sandbox' },
  { waits: 'unsignalled', received_before: '2026-03-02T12:00:00.000Z' },
])('an index of those that wait serves %j', async (filter) => {
  const { callbacks } = setting.service.stores;
  const plan = JSON.stringify(await callbacks.waiting(filter).explain('queryPlanner'));
  expect(plan).toContain('"indexName":"waiting"');
  expect(plan).not.toContain('COLLSCAN');
});

/** Id of a kept one, parked if `isParked`. */
async function store(isParked: boolean): Promise<string> {
  const { _id } = await keep(randomUUID(), { connector: 'stranger' });
  if (isParked) await setting.service.stores.callbacks.park(_id, PARKED);
  return _id;
}

const dismiss = (id: string) =>
  setting.json('callback', 'dismiss', id, '--reason', 'Another service has it');

test('a dismissed callback leaves the list and the metrics, and its audit line says why', async () => {
  const id = await store(true);
  const { db } = setting.deps;
  const listWaiting = async () => (await createMetricStore(db).read(new Date())).callbacks;
  expect(await listWaiting()).toEqual([
    { waits: 'parked', connector: expect.any(String), count: 1 },
  ]);
  expect(await dismiss(id)).toEqual({ id, status: 'dismissed' });
  expect(await listWaiting()).toEqual([]);
  for (const options of [[], ['--parked']]) {
    expect(await setting.json('callback', 'list', ...options)).toEqual(NO_CALLBACK);
    expect(await setting.json('callback', 'list', ...options, '--all')).toMatchObject({
      data: [{ id, parked: PARKED, dismissed_at: expect.any(String) }],
    });
  }
  expect((await setting.cli('callback', 'show', id)).stdout).toMatch(/Outcome: +dismissed, parked/);
  expect(await dismiss(id)).toEqual({ id, status: 'dismissed' });
  expect(await db.collection('audit_log').find({ target: id }).toArray()).toMatchObject([
    {
      act: 'callback.dismissed',
      actor: { door: 'command_line', host: hostname() },
      after: { resource: 'payout', name: 'completed', reason: 'Another service has it' },
    },
  ]);
});

test('only a parked callback is dismissed', async () => {
  const unsignalled = await store(false);
  const refusal = (id: string) =>
    setting.refusal('callback', 'dismiss', id, '--reason', 'Another service has it');
  expect((await refusal(unsignalled)).code).toBe('callback_not_parked');
  expect((await refusal('stranger:none')).code).toBe('callback_not_found');
  const signalled = await store(true);
  const { callbacks } = setting.service.stores;
  await callbacks.markSignalled({ _id: signalled }, '2026-03-01T12:01:00.000Z');
  expect((await refusal(signalled)).code).toBe('callback_signalled');
});
