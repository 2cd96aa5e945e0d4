import { randomUUID } from 'node:crypto';
import { msToTs } from '@temporalio/common/lib/time';
import { createLogger } from '../../src/base/log';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes';
import { checkIndexes } from '../../src/store';
import { checkTemporal } from '../../src/temporal/attributes';
import { createTemporalClient } from '../../src/temporal/client';
import { connectTemporal } from '../../src/temporal/connect';
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
  await expect(checkIndexes(shop.stores, log)).rejects.toThrow(/idempotency.*cli -- migrate/s);
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
  await checkIndexes(shop.stores, log);
  await checkAttributes();
});

test('a missing index that only speeds up lists is a warning', async () => {
  await shop.db.collection('payments').dropIndex('status_position');
  warnings.length = 0;
  await checkIndexes(shop.stores, log);
  expect(warnings.map((line) => JSON.parse(line))).toMatchObject([
    { count: 1, msg: expect.stringContaining('payments.status_position') },
  ]);
  expect(await shop.json('migrate')).toMatchObject({ indexes: ['payments.status_position'] });
});

test('a database of version 1 is refused by migrate and by the processes', async () => {
  const payments = shop.db.collection('payments');
  await payments.createIndex({ 'customer.email': 1 }, { name: 'clear_payer' });
  expect(await shop.refusal('migrate')).toEqual({
    code: 'version_1_data',
    message: expect.stringContaining('version 2 starts over'),
  });
  await expect(checkIndexes(shop.stores, log)).rejects.toThrow('holds data of version 1');
  await payments.dropIndex('clear_payer');
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
