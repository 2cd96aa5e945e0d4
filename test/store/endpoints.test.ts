import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { buildPosition } from '../../src/domain/cursor';
import type { EventType } from '../../src/domain/webhook/event';
import { Encrypted } from '../../src/encryption/encrypter';
import { signingSecret } from '../../src/store/endpoints';
import { useDatabase } from '../support/database';

const HOUR = 3_600_000;
const T0 = new Date('2026-03-01T12:00:00.000Z');
const after = (ms: number) => new Date(T0.getTime() + ms);
const secret = (name: string) => Encrypted.parse(`${name}.a.a.a.a`);

const database = useDatabase();
const endpoints = () => database.stores.endpoints;

async function register() {
  const owner = { account_id: randomUUID(), livemode: false, endpoint_id: 'we_1' };
  const url = 'https://example.com/';
  await endpoints().set({ ...owner, url, ciphertext: secret('first'), now: T0 });
  const read = () => endpoints().get(owner.account_id, owner.livemode);
  return {
    owner,
    roll: (name: string, now: Date, afterMs: number) =>
      endpoints().roll({ ...owner, ciphertext: secret(name), now, afterMs }),
    readSigning: async (now: Date) => {
      const endpoint = await read();
      return endpoint === null ? undefined : signingSecret(endpoint, now)?.split('.')[0];
    },
    listSecrets: async () =>
      (await read())?.secrets.map(({ ciphertext }) => ciphertext.split('.')[0]),
  };
}

test('a new URL leaves the secret, the times and the events of an endpoint as they are', async () => {
  const { owner } = await register();
  const url = 'https://example.com/moved';
  const set = (enabled_events?: EventType[] | 'all') =>
    endpoints().set({ ...owner, url, ciphertext: secret('u'), now: after(5), enabled_events });
  expect(await set()).toEqual({
    ...{ _id: expect.anything(), ...owner, url, description: null },
    ...{ slot: 0, position: buildPosition(T0.getTime(), 0) },
    secrets: [{ ciphertext: secret('first'), active_from: T0.toISOString() }],
    ...{ created_at: T0.toISOString(), updated_at: after(5).toISOString() },
  });
  expect((await set(['payment.settled'])).enabled_events).toEqual(['payment.settled']);
  expect((await set(['refund.failed'])).enabled_events).toEqual(['refund.failed']);
  expect((await set()).enabled_events).toEqual(['refund.failed']);
  expect((await set('all')).enabled_events).toBeUndefined();
  const live = { ...owner, livemode: true, ciphertext: secret('l'), now: T0, url };
  expect(await endpoints().set(live)).toMatchObject({ secrets: [{ ciphertext: secret('l') }] });
  expect((await endpoints().get(owner.account_id, false))?.secrets).toHaveLength(1);
});

test.each([0, HOUR, 24 * HOUR])('a roll in %i ms signs from that moment on', async (afterMs) => {
  const { roll, readSigning, listSecrets } = await register();
  await roll('second', T0, afterMs);
  expect(await readSigning(after(afterMs))).toBe('second');
  if (afterMs > 0) expect(await readSigning(after(afterMs - 1))).toBe('first');
  expect(await listSecrets()).toEqual(afterMs === 0 ? ['second'] : ['first', 'second']);
});

test('a new roll replaces a secret that does not sign yet, and drops one that no longer signs', async () => {
  const { owner, roll, readSigning, listSecrets } = await register();
  await roll('second', T0, 24 * HOUR);
  await roll('third', after(1_000), HOUR);
  expect(await listSecrets()).toEqual(['first', 'third']);
  expect(await readSigning(after(48 * HOUR))).toBe('third');
  await roll('fourth', after(2 * HOUR), HOUR);
  expect(await listSecrets()).toEqual(['third', 'fourth']);
  const none = { account_id: randomUUID(), livemode: owner.livemode };
  const missing = { ...none, ciphertext: secret('a'), now: T0, afterMs: 0 };
  expect(await endpoints().roll(missing)).toBeNull();
});

test('endpoints are listed oldest first, and two never share a slot', async () => {
  const { owner } = await register();
  const at = after(1).toISOString();
  const second = {
    ...{ ...owner, endpoint_id: 'we_2', slot: 1, url: 'https://example.com/', description: null },
    ...{ secrets: [], created_at: at, updated_at: at },
  };
  await endpoints().insert({ ...second, position: buildPosition(T0.getTime(), 2) });
  const taken = { ...second, endpoint_id: 'we_3', position: buildPosition(T0.getTime(), 1) };
  await expect(endpoints().insert(taken)).rejects.toThrow('account_environment_slot');
  await endpoints().insert({ ...taken, slot: 2 });
  const all = await endpoints().list(owner.account_id, false);
  expect(all.map((each) => each.endpoint_id)).toEqual(['we_1', 'we_3', 'we_2']);
});

test('a success is noted once in five minutes, and ends the failing before it', async () => {
  const { owner } = await register();
  const read = async () => {
    const endpoint = await endpoints().find(owner);
    if (endpoint === null) throw new Error('There is no endpoint.');
    return endpoint;
  };
  const noteSuccess = async (ms: number) => {
    await endpoints().noteSuccess(await read(), after(ms).toISOString());
    const { last_success_at, failing_since } = await read();
    return [Date.parse(last_success_at ?? '') - T0.getTime(), failing_since];
  };
  expect(await noteSuccess(0)).toEqual([0, undefined]);
  expect(await noteSuccess(HOUR / 20)).toEqual([0, undefined]);
  await endpoints().noteFailing(await read(), after(HOUR / 19).toISOString());
  expect(await noteSuccess(HOUR / 18)).toEqual([HOUR / 18, undefined]);
  expect(await noteSuccess(HOUR)).toEqual([HOUR, undefined]);
});

test('an endpoint that has succeeded since is not disabled, also by a process that does not know', async () => {
  const { owner } = await register();
  const failing = after(0).toISOString();
  const [oldest] = await endpoints().list(owner.account_id, owner.livemode);
  if (oldest === undefined) throw new Error('There is no endpoint.');
  await endpoints().noteFailing(oldest, failing);
  const known = { ...oldest, failing_since: failing };
  const disable = (since: string) =>
    inTransaction(database.mongo, (session) =>
      endpoints().disableFailing(known, since, after(2 * HOUR).toISOString(), session),
    );
  const rows = database.db.collection('webhook_endpoints');
  const last_success_at = after(HOUR).toISOString();
  await rows.updateOne({ _id: oldest._id }, { $set: { last_success_at } });
  expect(await disable(failing)).toBeNull();
  expect(await disable(last_success_at)).toMatchObject({ disabled_reason: 'failing' });
  expect(await disable(last_success_at)).toBeNull();
});
