import { randomUUID } from 'node:crypto';
import { MissingIndexes } from '../../src/base/mongo-indexes';
import { buildPosition } from '../../src/domain/cursor';
import type { EventType } from '../../src/domain/webhook/event';
import { Encrypted } from '../../src/encryption/encrypter';
import { firstEndpointId, signingSecret } from '../../src/store/endpoints';
import { useDatabase } from '../support/database';

const HOUR = 3_600_000;
const T0 = new Date('2026-03-01T12:00:00.000Z');
const after = (ms: number) => new Date(T0.getTime() + ms);
const secret = (name: string) => Encrypted.parse(`${name}.a.a.a.a`);

const database = useDatabase();
const endpoints = () => database.stores.endpoints;

/** An endpoint with its first secret, `first`. */
async function registered() {
  const of = { account_id: randomUUID(), livemode: false };
  await endpoints().set({ ...of, url: 'https://example.com/', sealed: secret('first'), now: T0 });
  return {
    of,
    roll: (name: string, now: Date, afterMs: number) =>
      endpoints().roll({ ...of, sealed: secret(name), now, afterMs }),
    signsAt: async (now: Date) => {
      const endpoint = await endpoints().get(of.account_id, of.livemode);
      return endpoint === null ? undefined : signingSecret(endpoint, now)?.split('.')[0];
    },
    kept: async () =>
      (await endpoints().get(of.account_id, of.livemode))?.secrets.map(
        ({ sealed }) => sealed.split('.')[0],
      ),
  };
}

test('setting the URL again keeps the secret', async () => {
  const { of } = await registered();
  const url = 'https://example.com/moved';
  const moved = await endpoints().set({ ...of, url, sealed: secret('unused'), now: after(5) });
  expect(moved).toEqual({
    _id: expect.anything(),
    ...of,
    endpoint_id: firstEndpointId(of.account_id, false),
    position: buildPosition(T0.getTime(), 0),
    url,
    secrets: [{ sealed: secret('first'), active_from: T0.toISOString() }],
    created_at: T0.toISOString(),
    updated_at: after(5).toISOString(),
  });
});

test('the events that an endpoint wants stay when it moves, until others or all are set', async () => {
  const { of } = await registered();
  const set = async (enabled_events?: EventType[] | 'all') => {
    const setting = { ...of, url: 'https://example.com/', sealed: secret('s'), now: T0 };
    return (await endpoints().set({ ...setting, enabled_events })).enabled_events;
  };
  expect(await set()).toBeUndefined();
  expect(await set(['payment.settled', 'payout.sent'])).toEqual(['payment.settled', 'payout.sent']);
  expect(await set()).toEqual(['payment.settled', 'payout.sent']);
  expect(await set(['refund.failed'])).toEqual(['refund.failed']);
  expect(await set('all')).toBeUndefined();
});

test('each environment has its own endpoint and secret', async () => {
  const { of, signsAt } = await registered();
  const live = { account_id: of.account_id, livemode: true };
  await endpoints().set({
    ...live,
    url: 'https://live.example.com/',
    sealed: secret('l'),
    now: T0,
  });
  expect(await signsAt(T0)).toBe('first');
  expect(await endpoints().get(of.account_id, true)).toMatchObject({
    secrets: [{ sealed: secret('l') }],
  });
});

test('a roll for now signs at once, and drops the old secret', async () => {
  const { roll, signsAt, kept } = await registered();
  await roll('second', after(1_000), 0);
  expect(await signsAt(after(1_000))).toBe('second');
  expect(await kept()).toEqual(['second']);
});

test.each([HOUR, 24 * HOUR])('a roll in %i ms signs from that moment on', async (afterMs) => {
  const { roll, signsAt, kept } = await registered();
  await roll('second', T0, afterMs);
  expect(await signsAt(after(afterMs - 1))).toBe('first');
  expect(await signsAt(after(afterMs))).toBe('second');
  expect(await kept()).toEqual(['first', 'second']);
});

test('a new roll replaces one still to come: the last one asked for wins', async () => {
  const { roll, signsAt, kept } = await registered();
  await roll('second', T0, 24 * HOUR);
  await roll('third', after(1_000), HOUR);
  expect(await kept()).toEqual(['first', 'third']);
  expect(await signsAt(after(48 * HOUR))).toBe('third');
});

test('what was superseded is pruned at the next roll', async () => {
  const { roll, kept } = await registered();
  await roll('second', T0, HOUR);
  await roll('third', after(2 * HOUR), HOUR);
  expect(await kept()).toEqual(['second', 'third']);
});

test('there is nothing to roll where there is no endpoint', async () => {
  const roll = {
    account_id: randomUUID(),
    livemode: false,
    sealed: secret('a'),
    now: T0,
    afterMs: 0,
  };
  expect(await endpoints().roll(roll)).toBeNull();
  expect(await endpoints().get(roll.account_id, false)).toBeNull();
});

test('the index that allowed one endpoint is replaced, and an early endpoint stays', async () => {
  const { db, stores } = database;
  const rows = db.collection('webhook_endpoints');
  await rows.dropIndexes();
  const early = { account_id: randomUUID(), livemode: true, url: 'https://example.com/' };
  const times = { created_at: T0.toISOString(), updated_at: T0.toISOString() };
  await rows.insertOne({ ...early, ...times, secrets: [] });
  const key = { account_id: 1, livemode: 1 } as const;
  await rows.createIndex(key, { name: 'account_environment', unique: true });
  const missing = new MissingIndexes();
  await stores.endpoints.ensureIndexes(missing);
  expect(missing.unique.sort()).toEqual([
    'webhook_endpoints.account_environment',
    'webhook_endpoints.account_environment_slot',
  ]);
  await stores.endpoints.ensureIndexes();
  await stores.endpoints.ensureIndexes();
  const second = { ...early, ...times, endpoint_id: 'we_2', slot: 1, secrets: [] };
  await stores.endpoints.insert({ ...second, position: buildPosition(T0.getTime(), 1) });
  const taken = { ...second, endpoint_id: 'we_3', position: buildPosition(T0.getTime(), 2) };
  await expect(stores.endpoints.insert(taken)).rejects.toThrow('account_environment_slot');
  const found = await stores.endpoints.list(early.account_id, true);
  expect(found.map((each) => each.endpoint_id)).toEqual([
    firstEndpointId(early.account_id, true),
    'we_2',
  ]);
});
