import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ClientSession, type Collection, MongoClient, MongoError } from 'mongodb';
import { abandon, connectMongo, inTransaction, openDatabase } from '../../src/base/mongo';
import { connectToBuild, makeIndexes } from '../../src/base/mongo-indexes';
import { buildPosition } from '../../src/domain/cursor';
import type { EventType } from '../../src/domain/events/event';
import { Encrypted } from '../../src/encryption/encrypter';
import { KINDS, LIFECYCLES } from '../../src/lifecycles';
import { auditBy, type Change } from '../../src/store/audit';
import {
  buildDelivery,
  createDeliveryStore,
  type DeliveryAttempt,
  type DeliveryRow,
  listAttempts,
} from '../../src/store/deliveries';
import { signingSecret } from '../../src/store/endpoints';
import { createEventStore, type EventDocument } from '../../src/store/events';
import { operatorsAudit } from '../support/audit';
import { connectMonitored, useDatabase } from '../support/database';
import { retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { mongodbUri } from '../support/servers';

const database = useDatabase();

function buildRows(count: number, statuses: readonly string[]) {
  return Array.from({ length: count }, (_, n) => {
    const _id = randomUUID();
    const unique = { position: _id, token_hash: _id, payment_id: _id, address: _id, name: _id };
    const status = statuses[n % statuses.length];
    return { _id, account_id: 'acct_1', livemode: false, status, ...unique };
  });
}

const FINAL = {
  ...{ payment: 'settled', refund: 'settled', payout: 'completed' },
  dispute: 'lost',
  ...{ crypto_payment: 'received', crypto_settlement: 'completed' },
};

test.each(KINDS)('the few %ss in flight have an index of their own', async (kind) => {
  const { db, stores } = database;
  const collection = db.collection<{ _id: string }>(`${kind}s`);
  await collection.insertMany(buildRows(400, [FINAL[kind]]));
  const inFlight = buildRows(7, LIFECYCLES[kind].inFlight);
  await collection.insertMany(inFlight);
  const ids = inFlight.map(({ _id }) => _id).sort();

  const first = await LIFECYCLES[kind].page(stores, '', 4);
  const second = await LIFECYCLES[kind].page(stores, first.at(-1)?._id ?? '', 4);
  expect([...first, ...second].map(({ _id }) => _id)).toEqual(ids);

  const plan = await stores[`${kind}s`].inFlight(ids[2] ?? '', 4).explain('executionStats');
  const { executionStats } = plan;
  expect(JSON.stringify(plan)).toContain('"indexName":"in_flight"');
  expect(JSON.stringify(plan)).not.toContain('COLLSCAN');
  expect(executionStats).toMatchObject({ nReturned: 4, totalDocsExamined: 4 });
});

/** An id that a caller without types left out. */
const missing: string = JSON.parse('{}').id;

test('a missing id selects no row of any collection, and releases no idempotency record', async () => {
  const { db, stores } = database;
  const { payments, refunds, payouts, events, accounts, callbacks, idempotency } = stores;
  const names = ['payments', 'refunds', 'payouts', 'events', 'accounts', 'bank_callbacks'];
  for (const name of names) {
    await db.collection<{ _id: string }>(name).insertOne({ _id: 'of another' });
  }
  const all = [payments, refunds, payouts, events, accounts, callbacks];
  const found = await Promise.all(all.map((each) => each.get(missing)));
  expect(found).toEqual(names.map(() => null));
  const record = { resource_id: randomUUID(), request: { held: true } };
  await db.collection('idempotency_records').insertOne(record);
  expect(await idempotency.forResource(missing)).toBeNull();
  expect(await idempotency.release(missing)).toMatchObject({ deletedCount: 0 });
});

test('the alert counts acts that give or lift power on live, and none of the sandbox or of earlier', async () => {
  const audit = operatorsAudit(database.stores);
  const acts: [Change['act'], livemode: boolean | null, count: number, Change['after']?][] = [
    ['api_key.created', true, 2],
    ['api_key.created', true, 2],
    ['api_key.created', false, 2],
    ['wallet.set', true, 1],
    ['wallet.set', false, 1],
    ['account.frozen', null, 1],
    ['account.unfrozen', null, 1],
    ['account.updated', null, 1],
    ['account.updated', null, 1, { approval_id: 'appr_1' }],
    ['operator.created', null, 1],
    ['connector_key.created', null, 1],
    ['user.password_reset', null, 1],
    ['webhook.set', true, 1],
  ];
  for (const [act, livemode, , after] of acts) {
    await audit({ act, account_id: 'acct_1', livemode, target: null, ...(after && { after }) });
  }
  const byMember = auditBy(
    { stores: database.stores, now: () => new Date() },
    { via: 'dashboard', user_id: 'user_1', email: 'ana@x.example' },
  );
  const invited = { act: 'user.invited', account_id: 'acct_1', livemode: null } as const;
  for (const role of ['owner', 'developer']) {
    await byMember({ ...invited, target: null, after: { role } });
  }
  const readCounts = async (since: string) => {
    const counted = await database.stores.auditLog.countWatched(since);
    return counted.filter(({ count }) => count > 0).map(({ act, count }) => [act, count]);
  };
  const counts = new Map(acts.map(([act, , count]) => [act, count])).set('user.invited', 1);
  expect(new Map(Object(await readCounts('2026-01-01T00:00:00.000Z')))).toEqual(counts);
  expect(await readCounts('9999-01-01T00:00:00.000Z')).toEqual([]);
});

const monitored = useDatabase({ connect: connectMonitored, indexed: false });
const store = () => createDeliveryStore(monitored.db);
const addAttempt = (attempt: DeliveryAttempt) => store().addAttempt(attempt);
const readRow = async (event_id: string) => (await store().forEvents([event_id]))[0];
const readAttempts = async (event_id: string) => listAttempts(await store().readLogs([event_id]));

const AT = '2026-03-01T12:00:00.000Z';
const NEXT = '2026-03-01T12:00:42.000Z';

const buildEvent = (_id: string, account_id = 'acct_1'): EventDocument => ({
  ...{ _id, account_id, livemode: false, type: 'payment.settled', created: AT },
  ...{ resource_id: randomUUID(), position: _id, data: {}, body: '{}', request_id: 'r', order: 0 },
});

const buildRow = (event_id: string, endpoint_id = 'we_1'): DeliveryRow =>
  buildDelivery(buildEvent(event_id), endpoint_id, 'pending');

async function insertRow(state: Partial<DeliveryRow> = {}): Promise<DeliveryRow> {
  const row = { ...buildRow(`evt_${randomUUID()}`), ...state };
  await store().insert([row]);
  return row;
}

/** A failed attempt, with texts that MongoDB could take for expressions. */
const buildAttempt = (event_id: string, changes: Partial<DeliveryAttempt> = {}) => ({
  ...{ event_id, endpoint_id: 'we_1', run: 0, attempt: 1, at: AT },
  ...{ url: 'https://shop.example.com/$hook', status_code: 500, error: null, duration_ms: 5 },
  ...{ response_excerpt: '$$ROOT', outcome: 'failed' as const, next_attempt_at: NEXT },
  ...changes,
});

test('an attempt is stored and counted in one write, and once, also when twenty workers store it', async () => {
  const [row, busy] = [await insertRow(), await insertRow()];
  const { event_id: id } = row;
  const commands: string[] = [];
  const listen = ({ commandName }: { commandName: string }) => commands.push(commandName);
  monitored.mongo.on('commandStarted', listen);
  await addAttempt(buildAttempt(id));
  monitored.mongo.off('commandStarted', listen);
  expect(commands).toEqual(['update']);
  expect(await addAttempt(buildAttempt(id, { status_code: 503 }))).toBe('known');
  await Promise.all(Array.from({ length: 20 }, () => addAttempt(buildAttempt(busy.event_id))));
  for (const each of [row, busy]) {
    expect(await readAttempts(each.event_id)).toEqual([buildAttempt(each.event_id)]);
    const counted = { ...each, attempts: 1, next_attempt_at: NEXT };
    expect(await readRow(each.event_id)).toEqual(counted);
  }
  expect(await addAttempt(buildAttempt('evt_none'))).toBe('no_event');
  expect(await store().forEvents(['evt_none'])).toEqual([]);
});

test('an attempt of an earlier run is counted, and changes only a pending delivery', async () => {
  const ended = { status: 'delivered', next_attempt_at: null, run: 2, attempts: 3 } as const;
  const row = await insertRow(ended);
  await addAttempt(buildAttempt(row.event_id, { run: 1 }));
  expect(await readRow(row.event_id)).toEqual({ ...row, attempts: 4 });
  const waiting = await insertRow({ run: 2 });
  const success = { run: 1, outcome: 'delivered', next_attempt_at: null } as const;
  await addAttempt(buildAttempt(waiting.event_id, success));
  const delivered = { status: 'delivered', next_attempt_at: null };
  expect(await readRow(waiting.event_id)).toMatchObject(delivered);
});

test('the latest 200 attempts of a delivery are stored, and all are counted', async () => {
  const { event_id } = await insertRow({ run: 16 });
  for (let n = 0; n < 17 * 12; n += 1) {
    await addAttempt(buildAttempt(event_id, { run: Math.floor(n / 12), attempt: 1 + (n % 12) }));
  }
  expect((await readAttempts(event_id)).at(-1)).toMatchObject({ run: 0, attempt: 5 });
  expect((await readRow(event_id))?.attempts).toBe(204);
});

test('a delivery that a redelivery has reserved is restored, unless an attempt has changed it', async () => {
  const ended = { status: 'exhausted', attempts: 12, next_attempt_at: null } as const;
  const before = await insertRow(ended);
  const reserved = await store().reserveRun(before, AT);
  if (reserved === null) throw new Error('Nothing was reserved.');
  expect(await store().reserveRun(before, AT)).toBeNull();
  await store().releaseRun(reserved, before);
  expect(await readRow(before.event_id)).toEqual({ ...before, run: 1 });
  const again = await store().reserveRun({ ...before, run: 1 }, AT);
  if (again === null) throw new Error('Nothing was reserved.');
  await addAttempt(buildAttempt(before.event_id, { run: 2 }));
  await store().releaseRun(again, before);
  expect(await readRow(before.event_id)).toMatchObject({ status: 'pending', attempts: 13, run: 2 });
});

test('failed deliveries are listed page by page, also within one event, and pages are full of events', async () => {
  const account_id = `acct_${randomUUID()}`;
  const rows = ['e1', 'e2', 'e3'].flatMap((event_id) =>
    ['a', 'b', 'c'].map((endpoint_id) => ({
      ...{ ...buildRow(`${account_id}:${event_id}`, endpoint_id), account_id, position: event_id },
      status: 'exhausted' as const,
    })),
  );
  await store().insert(rows);
  const owner = { account_id, livemode: false };
  const filter = { ...owner, since: 'e', until: 'f', statuses: ['exhausted'] as const };
  const list = (after?: DeliveryRow) => store().listResendable(filter, 2, after);
  const ids: string[] = [];
  for (let page = await list(); page.length > 0; page = await list(page.at(-1))) {
    ids.push(...page.map(({ _id }) => _id));
  }
  expect(ids).toEqual(rows.map(({ _id }) => _id));
  const page = await store().listByStatus({ ...owner, status: 'exhausted', limit: 2 });
  expect(new Set(page.map(({ event_id }) => event_id)).size).toBeGreaterThanOrEqual(2);
});

test('events without an endpoint, or whose endpoint was deleted, are listed in both directions', async () => {
  const account_id = `acct_${randomUUID()}`;
  const events = ['1', '2', '3', '4', '5'].map((n) => buildEvent(`${account_id}:${n}`, account_id));
  const [none, delivered, deleted, both, last] = events.map(({ _id }) => _id);
  const eventStore = createEventStore(monitored.db);
  await eventStore.insert(events);
  const rows = [
    { ...buildRow(delivered ?? ''), status: 'delivered' as const },
    { ...buildRow(deleted ?? ''), status: 'no_endpoint' as const },
    { ...buildRow(both ?? '', 'we_1'), status: 'no_endpoint' as const },
    { ...buildRow(both ?? '', 'we_2'), status: 'delivered' as const },
  ];
  await store().insert(rows);
  const list = async (page: object) => {
    const filter = { account_id, livemode: false, limit: 3, ...page };
    return (await eventStore.listWithoutEndpoint(filter)).map(({ _id }) => _id);
  };
  expect(await list({})).toEqual([last, both, deleted]);
  expect(await list({ before: deleted })).toEqual([none]);
  expect(await list({ after: none, limit: 2 })).toEqual([both, deleted]);
});

const HOUR = 3_600_000;
const T0 = new Date('2026-03-01T12:00:00.000Z');
const after = (ms: number) => new Date(T0.getTime() + ms);
const secret = (name: string) => Encrypted.parse(`${name}.a.a.a.a`);
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

test('a roll signs from its moment on, replaces what does not sign yet, and drops what signs no longer', async () => {
  const { owner, roll, readSigning, listSecrets } = await register();
  await roll('instant', T0, 0);
  expect([await readSigning(T0), await listSecrets()]).toEqual(['instant', ['instant']]);
  await roll('first', T0, 0);
  await roll('second', T0, 24 * HOUR);
  expect(await readSigning(after(24 * HOUR - 1))).toBe('first');
  expect(await readSigning(after(24 * HOUR))).toBe('second');
  expect(await listSecrets()).toEqual(['first', 'second']);
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

const name = `test_${randomUUID().slice(0, 8)}`;
type Row = { _id: string };

/** Two connections, for which nobody waits for long. */
const pool = { maxPoolSize: 2, waitQueueTimeoutMS: 100 };
const narrow = new MongoClient(mongodbUri(), { ...pool, runtimeAdapters: { os } });
const wide = useFixture(
  async () => ({ mongo: await connectMongo(mongodbUri(), 'transaction-test') }),
  ({ mongo }) => mongo.close(),
);

afterAll(async () => {
  await narrow.db(name).dropDatabase();
  await narrow.close();
});

/** Opens both connections, however long the machine takes. @returns rows behind them */
async function openRows() {
  const rows = narrow.db(name).collection<Row>('rows');
  await retryUntilDone(() => Promise.all([rows.countDocuments(), rows.countDocuments()]));
  await retryUntilDone(() => rows.updateOne({ _id: 'first' }, { $set: {} }, { upsert: true }));
  return rows;
}

/** Occupies a connection for half a second: longer than anyone waits for one. */
const occupy = (rows: Collection<Row>) =>
  rows.find({ _id: 'first', $where: 'sleep(500) || true' }).toArray();

/** Less than a transaction may last, and more than a busy machine needs for one write. */
const FREE_MS = 30_000;

describe('a transaction', () => {
  const FAULT = new Error('the work fails');
  const OF_DRIVER = new MongoError('of the driver');

  test.each<[string, unknown, (session: ClientSession) => Promise<unknown>]>([
    ['succeeds is committed', 'done', async () => 'done'],
    ['fails is aborted', FAULT, () => Promise.reject(FAULT)],
    ['fails in the driver is aborted', OF_DRIVER, () => Promise.reject(OF_DRIVER)],
    ['is abandoned is aborted', null, abandon],
  ])('that %s once, also when it waits for a free connection', async (_how, result, end) => {
    const rows = await openRows();
    const _id = randomUUID();
    const busy: Promise<unknown>[] = [];
    let runs = 0;
    const ended = inTransaction(narrow, async (session) => {
      runs += 1;
      await rows.insertOne({ _id }, { session });
      busy.push(occupy(rows), occupy(rows));
      return await end(session);
    });
    expect(await ended.catch((error: unknown) => error)).toEqual(result);
    expect(runs).toBe(1);
    const stored = wide.mongo.db(name).collection<Row>('rows');
    const options = { upsert: true, maxTimeMS: FREE_MS };
    const { upsertedCount } = await stored.updateOne({ _id }, { $set: { n: 1 } }, options);
    expect(upsertedCount).toBe(result === 'done' ? 0 : 1);
    await Promise.all(busy);
  });

  test('without writes reads nothing that a later read does not see', async () => {
    const ROUNDS = 100;
    const count = wide.mongo.db(name).collection<Row & { n: number }>('counts');
    await count.insertOne({ _id: 'count', n: 0 });
    const increase = async () => {
      for (let n = 1; n <= ROUNDS; n += 1) await count.updateOne({ _id: 'count' }, { $set: { n } });
    };
    const follow = async () => {
      for (let n = 0; n < ROUNDS; ) {
        let seen = 0;
        await inTransaction(wide.mongo, async (session) => {
          seen = (await count.findOne({ _id: 'count' }, { session }))?.n ?? 0;
        });
        n = (await count.findOne({ _id: 'count' }))?.n ?? 0;
        expect(n).toBeGreaterThanOrEqual(seen);
      }
    };
    await Promise.all([increase(), follow(), follow()]);
  });
});

test('options in the address of MongoDB weaken neither reads nor writes', async () => {
  const buildAddress = (options: string) => {
    const uri = new URL(mongodbUri());
    for (const [option, value] of new URLSearchParams(options)) uri.searchParams.set(option, value);
    return uri.href;
  };
  const weak = 'readPreference=nearest&retryWrites=false&w=1&readConcernLevel=local';
  const mongo = await connectMongo(buildAddress(weak), 'transaction-test');
  const { readPreference, retryWrites, writeConcern, readConcern } = mongo.options;
  await mongo.close();
  const reads = [readPreference.mode, readConcern.level];
  expect(reads).toEqual(['primary', 'majority']);
  expect([retryWrites, writeConcern?.w, writeConcern?.journal]).toEqual([true, 'majority', true]);
  const unsafe = connectMongo(buildAddress('journal=false'), 'transaction-test');
  await expect(unsafe).rejects.toThrow(/journal=false/);
});

test('the server ends each read of an opened database in time, unless the read allows longer', async () => {
  await openRows();
  const rows = openDatabase(narrow, name, 50).collection<Row>('rows');
  const slow = { $where: 'sleep(300) || true' };
  const body = 'function () { sleep(300); return true; }';
  const computed = { $expr: { $function: { body, args: [], lang: 'js' } } };
  const reads = [
    () => rows.findOne(slow),
    () => rows.find(slow).toArray(),
    () => rows.countDocuments(computed),
    () => rows.aggregate([{ $match: computed }]).toArray(),
  ];
  // Codes of a read that is out of time, and of a function that was stopped.
  const codes = [50, 11_601];
  for (const read of reads) {
    expect(codes).toContain(await read().catch(({ code }: { code: number }) => code));
  }
  expect(await rows.find(slow).maxTimeMS(60_000).toArray()).not.toEqual([]);
});

describe('an index', () => {
  const SOCKET_MS = 400;
  const UNIQUE = { key: { token: 1 }, name: 'token', unique: true } as const;
  const PLAIN = { key: { status: 1 }, name: 'status' } as const;

  test('is waited for when its build outlasts the time-out of sockets', async () => {
    // The server may end the transaction for its age on a busy machine: then the next one counts.
    for (const nth of [1, 2, 3, 4, 5]) {
      const collection = wide.mongo.db(name).collection(`slow-${nth}`);
      await collection.insertOne({ token: 'stored' });
      const patient = await connectToBuild(`${mongodbUri()}&socketTimeoutMS=${SOCKET_MS}`);
      // No build of the collection begins while a transaction has written to it.
      const session = wide.mongo.startSession();
      session.startTransaction();
      await collection.insertOne({ token: 'held' }, { session });
      const building = makeIndexes(patient.db(name).collection(`slow-${nth}`), [UNIQUE]);
      await sleep(2 * SOCKET_MS);
      const [committed] = await Promise.allSettled([session.commitTransaction()]);
      await session.endSession();
      await building;
      await patient.close();
      expect((await collection.indexes()).map((index) => index.name)).toEqual(['_id_', 'token']);
      if (committed.status === 'fulfilled') return;
    }
    throw new Error('The server ended each transaction for its age.');
  });

  test('of the same name with other keys is refused', async () => {
    const collection = wide.mongo.db(name).collection('differs');
    await makeIndexes(collection, [PLAIN]);
    const other = { key: { status: 1, token: 1 }, name: 'status' } as const;
    await expect(makeIndexes(collection, [other])).rejects.toThrow(/same name/);
  });
});
