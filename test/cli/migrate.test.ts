import { randomUUID } from 'node:crypto';
import { msToTs } from '@temporalio/common/lib/time';
import { Registry } from 'prom-client';
import { createLogger } from '../../src/base/log';
import { FORMAT } from '../../src/domain/format';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes';
import { taskQueues } from '../../src/domain/task-queues';
import { watchEpochs } from '../../src/service/installation/epoch';
import { checkDatabase } from '../../src/store';
import { checkTemporal } from '../../src/temporal/attributes';
import { createTemporalClient } from '../../src/temporal/client';
import { connectTemporal } from '../../src/temporal/connect';
import { connectConnector } from '../connectors/process';
import { eventually } from '../support/http';
import { temporalAddress } from '../support/servers';
import { commandsIn, run, useProvisioning } from './cli';

const warnings: string[] = [];
const log = createLogger('migrate', 'warn', { write: (line) => void warnings.push(line) });
const namespace = `migrate-${randomUUID().slice(0, 8)}`;
const ATTRIBUTES = Object.keys(SEARCH_ATTRIBUTES).sort();
const DAY_MS = 86_400_000;

const shop = useProvisioning();
const temporal = connectTemporal({ address: temporalAddress(), namespace });
const where = { connection: temporal.connection, namespace };

beforeAll(async () => {
  shop.env['TEMPORAL_NAMESPACE'] = namespace;
  await temporal.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs(DAY_MS),
  });
});
afterAll(() => temporal.connection.close());

/** Checks Temporal as a process does, again where it does not answer in time, which is no fault. */
const checkAttributes = () =>
  eventually('an answer of Temporal', async () => {
    warnings.length = 0;
    await checkTemporal(where, log);
    return warnings.length === 0;
  });

test('processes refuse a database and a namespace without `migrate`, and say how to prepare them', async () => {
  await expect(checkDatabase(shop.stores, log)).rejects.toThrow(/idempotency.*cli -- migrate/s);
  await expect(checkAttributes()).rejects.toMatchObject({
    name: 'ConfigFault',
    message: expect.stringMatching(/lacks search attributes.*migrate.*temporal operator.*tcld/s),
  });
});

test('migrate creates what is missing once, and processes start then', async () => {
  const missing = await shop.json('migrate', '--dry-run');
  expect(missing).toEqual({
    indexes: expect.arrayContaining(['api_keys.hash', 'payments.status_position']),
    search_attributes: expect.arrayContaining(ATTRIBUTES),
  });
  expect(await shop.json('migrate', '--dry-run')).toEqual(missing);
  expect((await shop.cli('migrate')).stdout).toContain('api_keys.hash');
  expect(await shop.json('migrate')).toEqual({ indexes: [], search_attributes: [] });
  await checkDatabase(shop.stores, log);
  await checkAttributes();
});

test('a missing index that only speeds up lists is a warning, and no process starts without a validator', async () => {
  await shop.db.collection('payments').dropIndex('status_position');
  warnings.length = 0;
  await checkDatabase(shop.stores, log);
  expect(warnings.map((line) => JSON.parse(line))).toMatchObject([
    { count: 1, msg: expect.stringContaining('payments.status_position') },
  ]);
  for (const collection of ['journal_entries', 'ledger_books']) {
    await shop.db.command({ collMod: collection, validationAction: 'warn' });
    const fault = `validators without which a book could be wrong: ${collection}. Make them`;
    await expect(checkDatabase(shop.stores, log)).rejects.toThrow(fault);
    const { indexes } = Object(await shop.json('migrate'));
    expect(indexes).toContain(`${collection}.validator`);
    await checkDatabase(shop.stores, log);
  }
  expect(await shop.json('migrate')).toMatchObject({ indexes: [] });
});

const OTHER = FORMAT + 1;
const NEEDS = /reads only format \d. Set both MONGODB_DB and TEMPORAL_NAMESPACE to new names/;

/** Connects as connectors do, and as the sandbox bank. */
const connectBank = () =>
  connectConnector('sandbox', {
    ...{ database: shop.db.databaseName, prefix: '', keysDir: '', settings: {}, namespace },
  });

test.each([
  [`format ${OTHER}`, { format: OTHER }],
  ['data without a format number', {}],
])('every command and process refuses a database with %s', async (found, epoch) => {
  const epochs = shop.db.collection<{ _id: string }>('service_epoch');
  await epochs.replaceOne({ _id: 'epoch' }, epoch, { upsert: true });
  const state = `The database ${shop.db.databaseName} has ${found}`;
  for (const args of [['migrate'], ['migrate', '--dry-run'], ['account', 'list']]) {
    const { code, message } = await shop.refusal(...args);
    expect(code).toBe('other_format');
    expect(message).toContain(state);
    expect(message).toMatch(NEEDS);
  }
  await expect(checkDatabase(shop.stores, log)).rejects.toThrow(state);
  await expect(connectBank()).rejects.toThrow(state);
  await epochs.replaceOne({ _id: 'epoch' }, { format: FORMAT });
});

test.each(['payments', 'payouts'])('a database with %s and no epoch is refused', async (kind) => {
  const epochs = shop.db.collection<{ _id: string }>('service_epoch');
  const resources = shop.db.collection<{ _id: string }>(kind);
  await epochs.deleteOne({ _id: 'epoch' });
  await checkDatabase(shop.stores, log);
  await resources.insertOne({ _id: 'paid' });
  await expect(checkDatabase(shop.stores, log)).rejects.toThrow('data without a format number');
  await resources.deleteOne({ _id: 'paid' });
  await epochs.insertOne(Object.assign({ _id: 'epoch' }, { format: FORMAT }));
});

describe('the format of a namespace', () => {
  const { lifecycleQueue } = taskQueues('');
  const scheduleId = `service-format:${lifecycleQueue}`;
  const watch = async (advances: boolean) => {
    const { epoch } = shop.stores;
    const deps = { epoch, temporal, lifecycleQueue, now: () => new Date() };
    const guard = await watchEpochs(deps, { registry: new Registry(), log, advances });
    guard.close();
    return guard.fault();
  };

  test('is noted by the first worker, and processes start then', async () => {
    expect(await watch(true)).toBeUndefined();
    const { state } = await temporal.schedule.getHandle(scheduleId).describe();
    expect(state).toMatchObject({
      paused: true,
      note: expect.stringContaining(`format ${FORMAT}`),
    });
    expect(await watch(false)).toBeUndefined();
  });

  test('is another one: no process starts, and no command acts', async () => {
    const handle = temporal.schedule.getHandle(scheduleId);
    await handle.update((schedule) => ({ ...schedule, state: { note: `format ${OTHER}` } }));
    const stated = `The namespace ${namespace} of Temporal has format ${OTHER}`;
    const { code, message } = await shop.refusal('migrate');
    expect(code).toBe('other_format');
    expect(message).toContain(stated);
    expect(message).toMatch(NEEDS);
    for (const advances of [true, false]) await expect(watch(advances)).rejects.toThrow(stated);
    await expect(connectBank()).rejects.toThrow(stated);
    await handle.delete();
  });
});

test('an unknown namespace is reported as a fault of the settings', async () => {
  const elsewhere = commandsIn({ ...shop.env, TEMPORAL_NAMESPACE: 'elsewhere' });
  expect(await elsewhere.refusal('migrate')).toEqual({
    code: 'temporal_refused',
    message: expect.stringContaining('TEMPORAL_NAMESPACE'),
  });
});

test('the API does not ask callers to try again what only an operator can fix', async () => {
  const client = connectTemporal({ address: temporalAddress(), namespace: 'elsewhere' });
  const { stores } = shop;
  const deps = { client, stores, lifecycleQueue: 'none', now: () => new Date() };
  const cancelled = createTemporalClient(deps).cancelPayment(
    { _id: randomUUID(), version: 2 },
    'customer',
  );
  await expect(cancelled).rejects.toMatchObject({ name: 'ConfigFault' });
  await client.connection.close();
});

test('remote servers without TLS are refused unless ALLOW_CLEAR_TEXT allows it', async () => {
  const remote = { MONGODB_URI: 'mongodb://192.0.2.1/?serverSelectionTimeoutMS=100' };
  const env = { ...shop.env, ...remote };
  expect((await commandsIn(env).refusal('account', 'list')).code).toBe('clear_text_refused');
  const { exit, stderr } = await run({ ...env, ALLOW_CLEAR_TEXT: 'yes' }, 'account', 'list');
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: expect.stringContaining('does not answer') });
});
