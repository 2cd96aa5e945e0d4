import { randomUUID } from 'node:crypto';
import { deliverCallback, type ResourceCallback } from '../../src/callbacks/deliver';
import type { CallbackDocument } from '../../src/store/callbacks';
import { useBankWorld } from '../connectors/bank-world';

const connector = 'crowded';
const world = useBankWorld();

const deliver = (callback: ResourceCallback) => deliverCallback(world.server.inbox, callback);

function about(resource_id: string): ResourceCallback {
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: new Date().toISOString() };
  return { connector, resource: 'refund', resource_id, name: 'settled', callback };
}

const buildParked = (): CallbackDocument => {
  const { callback: body, ...target } = about(randomUUID());
  const times = { received_at: body.occurred_at, signalled_at: null };
  return { _id: randomUUID(), ...target, body, ...times, unapplied: null, parked: 'unknown' };
};

test('a connector that signals itself has a thousand parked at most; what it has goes on', async () => {
  await world.insertCallbacks(Array.from({ length: 1_000 }, buildParked));
  const last = about(randomUUID());
  expect(await deliver(last)).toBe('parked');

  const next = about(randomUUID());
  await expect(deliver(next)).rejects.toMatchObject({ code: 'rate_limited' });
  expect(await world.callbacks(next.resource_id)).toEqual([]);

  expect(await deliver(last)).toBe('parked');
  const { id } = await world.knowRefund({}, connector);
  expect(await deliver(about(id))).toBe('delivered');
  expect(await deliver({ ...about(randomUUID()), connector: 'sandbox' })).toBe('parked');
});
