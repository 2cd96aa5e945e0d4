import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { deliverCallback, type ResourceCallback } from '../../src/callbacks/deliver';
import type { CallbackDocument, WaitingFilter } from '../../src/store/callbacks';
import { createMetricStore } from '../../src/store/metrics';
import { useResourceSetting } from './resource-setting';

// The list without a filter reads the callbacks of all accounts, and other files store incomplete ones.
const setting = useResourceSetting({ alone: true });
/** Connectors of this file alone: what it lists and deletes is its own. */
const BANK = `bank-${randomUUID().slice(0, 8)}`;
const OTHER = `other-${randomUUID().slice(0, 8)}`;
const ofBank = ['--connector', BANK];
afterEach(async () => {
  const callbacks = setting.deps.db.collection('bank_callbacks');
  await callbacks.deleteMany({ connector: { $in: [BANK, OTHER] } });
});

const PARKED = 'no such refund at this connector';
const NO_CALLBACK = { data: [], has_more: false };
const OCCURRED_AT = '2026-03-01T12:00:00.000Z';

/** Stores a callback as it is when its connector dies before the signal. */
function store(resource_id: string, { connector = BANK, day = 1 } = {}) {
  return setting.service.stores.callbacks.insertOnce({
    connector,
    resource: 'payout',
    resource_id,
    name: 'completed',
    body: { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT, reason: 'It arrived' },
    received_at: `2026-03-0${day}T12:00:00.000Z`,
  });
}

/** Delivers a callback about a resource that does not exist. */
async function park(resource_id = randomUUID()) {
  const warned: [object, string][] = [];
  const log = { warn: (...line: [object, string]) => void warned.push(line) };
  const deps = { ...setting.deps, now: () => new Date(), log };
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: OCCURRED_AT };
  const about = { resource: 'refund', resource_id, name: 'settled' } as const;
  const report: ResourceCallback = { connector: BANK, ...about, callback };
  expect(await deliverCallback(deps, report)).toBe('parked');
  return { id: `${BANK}:${callback.callback_id}`, callback, warned };
}

const list = async (...options: string[]) => await setting.json('callback', 'list', ...options);
const buildRow = ({ _id: id, connector, resource, resource_id, name }: CallbackDocument) =>
  expect.objectContaining({ id, connector, resource, resource_id, name, signalled_at: null });

test('a callback that was never signalled is listed, delivered once, and then refused', async () => {
  const id = await setting.payout({ amount: 66_623 });
  const { connector } = setting.service;
  const { _id } = await store(id, { connector });
  const about = ['--resource-id', id];
  expect(await list('--unsignalled', ...about)).toEqual({
    data: [
      {
        ...{ id: _id, connector, resource: 'payout', resource_id: id, name: 'completed' },
        ...{ received_at: '2026-03-01T12:00:00.000Z', signalled_at: null },
        ...{ parked: null, unapplied: null, signed_by: null },
      },
    ],
    has_more: false,
  });
  const delivered = { id: _id, status: 'delivered' };
  expect(await setting.json('callback', 'deliver', _id)).toEqual(delivered);
  await setting.service.becomes('payouts', id, { status: 'completed' });
  expect(await setting.refusal('callback', 'deliver', _id)).toEqual({
    code: 'callback_signalled',
    message: `${_id} was signalled to its workflow: \`callback show ${_id}\` shows when.`,
  });
  expect(await list(...about)).toEqual(NO_CALLBACK);
  expect((await setting.cli('callback', 'list', ...about)).stdout).toBe('No callback waits.\n');
  const { stdout } = await setting.cli('callback', 'show', _id);
  expect(stdout).toMatch(/\nReason: +It arrived\n/);
  expect(stdout).toMatch(/\nOutcome: +signalled\n/);
});

test('a parked callback stays parked until its resource exists, and is logged as a warning', async () => {
  const { id, callback, warned } = await park();
  expect(warned).toEqual([
    [
      {
        callback_id: callback.callback_id,
        connector: BANK,
        refund_id: expect.any(String),
        code: 'settled',
      },
      'callback parked',
    ],
  ]);
  const row = { id, parked: PARKED };
  expect(await list('--parked', ...ofBank)).toMatchObject({
    data: [{ ...row, signalled_at: null }],
  });
  expect(await setting.json('callback', 'show', id)).toMatchObject({ ...row, callback });
  expect(await setting.json('callback', 'deliver', id)).toEqual({ id, status: 'parked' });
  const { stdout } = await setting.cli('callback', 'deliver', id);
  expect(stdout).toBe(`${id} stays parked: its connector still has no such resource.\n`);
});

test('the list is filtered, and begins with the callback that waits longest', async () => {
  const other = await store(randomUUID(), { connector: OTHER, day: 3 });
  const second = await store(randomUUID(), { day: 2 });
  const first = await store(randomUUID());
  const { id: parked } = await park();
  const own = [buildRow(first), buildRow(second)];
  const all = { data: [...own, expect.objectContaining({ id: parked })], has_more: false };
  expect(await list(...ofBank)).toEqual(all);
  expect(await list('--unsignalled', ...ofBank)).toEqual({ data: own, has_more: false });
  expect(await list('--parked', ...ofBank)).toMatchObject({ data: [{ id: parked }] });
  expect(await list('--connector', OTHER)).toMatchObject({ data: [buildRow(other)] });
  expect(await list('--resource-id', second.resource_id)).toMatchObject({
    data: [buildRow(second)],
  });
  expect(await list('--limit', '1', ...ofBank)).toEqual({ data: own.slice(0, 1), has_more: true });
  // Without a filter all connectors are listed.
  const { data } = Object(await list('--limit', '1000'));
  expect(data).toEqual(expect.arrayContaining([...all.data, buildRow(other)]));
  const { stdout } = await setting.cli('callback', 'list', '--limit', '1', ...ofBank);
  expect(stdout).toMatch(/^CALLBACK +RECEIVED +RESOURCE +ID +SAYS +WAITS\n/);
  expect(stdout).toMatch(/ payout +\S+ +completed +never signalled\n\nThere are more\.\n$/);
});

test('an unknown callback and one about an invalid id are refused', async () => {
  expect(await setting.refusal('callback', 'show', 'sandbox:none')).toEqual({
    code: 'callback_not_found',
    message: 'There is no callback sandbox:none.',
  });
  expect((await setting.refusal('callback', 'deliver', 'sandbox:none')).code).toBe(
    'callback_not_found',
  );
  const { _id } = await store('no id of ours');
  expect((await setting.refusal('callback', 'deliver', _id)).code).toBe('callback_unreadable');
});

test.each<WaitingFilter>([
  { waits: 'any' },
  { waits: 'parked', connector: 'sandbox' },
  { waits: 'unsignalled', received_before: '2026-03-02T12:00:00.000Z' },
])('the index of waiting callbacks serves %j', async (filter) => {
  const { callbacks } = setting.service.stores;
  const plan = JSON.stringify(await callbacks.waiting(filter).explain('queryPlanner'));
  expect(plan).toContain('"indexName":"waiting"');
  expect(plan).not.toContain('COLLSCAN');
});

/** @returns id of a stored callback, parked if `isParked` */
async function storeAnother(isParked: boolean): Promise<string> {
  const { _id } = await store(randomUUID());
  if (isParked) await setting.service.stores.callbacks.park(_id, PARKED);
  return _id;
}

const dismiss = (id: string) =>
  setting.json('callback', 'dismiss', id, '--reason', 'Another service has it');

test('a dismissed callback leaves the list and the metrics, and the audit log has the reason', async () => {
  const id = await storeAnother(true);
  const { db } = setting.deps;
  const listWaiting = async () => {
    const { callbacks } = await createMetricStore(db).read(new Date());
    return callbacks.filter(({ connector }) => connector === BANK);
  };
  expect(await listWaiting()).toEqual([{ waits: 'parked', connector: BANK, count: 1 }]);
  expect(await dismiss(id)).toEqual({ id, status: 'dismissed' });
  expect(await listWaiting()).toEqual([]);
  for (const options of [ofBank, ['--parked', ...ofBank]]) {
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
  const unsignalled = await storeAnother(false);
  const refusal = (id: string) =>
    setting.refusal('callback', 'dismiss', id, '--reason', 'Another service has it');
  expect((await refusal(unsignalled)).code).toBe('callback_not_parked');
  expect((await refusal('stranger:none')).code).toBe('callback_not_found');
  const signalled = await storeAnother(true);
  const { callbacks } = setting.service.stores;
  await callbacks.markSignalled({ _id: signalled }, '2026-03-01T12:01:00.000Z');
  expect((await refusal(signalled)).code).toBe('callback_signalled');
});
