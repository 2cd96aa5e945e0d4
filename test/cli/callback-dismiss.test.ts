import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createMetricStore } from '../../src/store/metrics';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();
afterEach(async () => {
  await setting.deps.db.collection('bank_callbacks').deleteMany({});
});

/** Stores a report about a refund that no connector has, parked if `isParked`. */
async function store(isParked: boolean) {
  const { callbacks } = setting.service.stores;
  const { _id } = await callbacks.insertOnce({
    connector: 'stranger',
    resource: 'refund',
    resource_id: randomUUID(),
    name: 'settled',
    body: { callback_id: `cb_${randomUUID()}`, occurred_at: '2026-03-01T12:00:00.000Z' },
    received_at: '2026-03-01T12:00:00.000Z',
  });
  if (isParked) await callbacks.park(_id, 'no such refund at this connector');
  return _id;
}

const dismiss = (id: string) =>
  setting.json('callback', 'dismiss', id, '--reason', 'Another service has it');
const NO_CALLBACK = { data: [], has_more: false };

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
      data: [{ id, parked: 'no such refund at this connector', dismissed_at: expect.any(String) }],
    });
  }
  expect((await setting.cli('callback', 'show', id)).stdout).toMatch(/Outcome: +dismissed, parked/);
  expect(await dismiss(id)).toEqual({ id, status: 'dismissed' });
  expect(await db.collection('audit_log').find({ target: id }).toArray()).toMatchObject([
    {
      act: 'callback.dismissed',
      actor: { door: 'command_line', host: hostname() },
      after: { resource: 'refund', name: 'settled', reason: 'Another service has it' },
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
