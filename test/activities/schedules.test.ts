import { randomUUID } from 'node:crypto';
import { CancelledFailure } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createClockActivities } from '../../activities/clock';
import { createAuditActivities } from '../../activities/schedules/audit';
import { connectTemporal } from '../../src/temporal/connect';
import { storedPayout } from '../api/payout-setting';
import { useDatabase } from '../support/database';
import { useFixture } from '../support/fixture';
import { paymentAt } from '../support/list-rows';
import { temporalAddress } from '../support/servers';

const LONG_AGO = '2026-01-01T00:00:00.000Z';
const COUNT = 3;

const database = useDatabase();
const temporal = useFixture(
  async () => connectTemporal({ address: temporalAddress(), namespace: 'default' }),
  ({ connection }) => connection.close(),
);

/** Activities of the audit, and what they report. */
function createAudit(payments = database.stores.payments) {
  const heartbeats: unknown[] = [];
  const environment = new MockActivityEnvironment();
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const activities = createAuditActivities({
    ...{ stores: { ...database.stores, payments }, temporal, now: () => new Date() },
    ...{ lifecycleQueue: 'unused', webhookQueue: 'unused' },
    log: { info: () => undefined, warn: () => undefined },
  });
  return { activities, environment, heartbeats };
}

test('the audit sends a heartbeat for each callback, also for one that it parks', async () => {
  for (let n = 0; n < COUNT; n += 1) {
    await database.stores.callbacks.insertOnce({
      ...{ connector: 'sandbox', resource: 'payout', resource_id: randomUUID(), name: 'sent' },
      body: { callback_id: `C${n}`, occurred_at: LONG_AGO },
      received_at: LONG_AGO,
    });
  }
  const { activities, environment, heartbeats } = createAudit();
  const result = await environment.run(activities.auditCallbacks);
  expect(result).toMatchObject({ delivered: 0, waiting: 0, parked: COUNT });
  expect(heartbeats).toHaveLength(COUNT);
});

test('the audit sends a heartbeat for each late reversal, with the place from which a retry continues', async () => {
  const heartbeatsBefore: number[] = [];
  const { activities, environment, heartbeats } = createAudit({
    ...database.stores.payments,
    listUnconfirmedReversals: async () =>
      Array.from({ length: COUNT }, (_, n) => paymentAt(n, LONG_AGO)),
    setAttention: async () => {
      heartbeatsBefore.push(heartbeats.length);
      return true;
    },
  });
  await environment.run(activities.auditResources);
  expect(heartbeatsBefore).toHaveLength(COUNT);
  expect(new Set(heartbeatsBefore).size).toBe(COUNT);
  const place = { part: 'everything', began_at_ms: expect.any(Number), orphans: [] };
  expect(heartbeats.slice(-COUNT)).toEqual(Array(COUNT).fill(expect.objectContaining(place)));
});

test('an advance of the sandbox clock ends when its worker stops, though no workflow answers', async () => {
  const offset = { account_id: 'acct_clock', offset_ms: 60_000 };
  const row = storedPayout(offset, { status: 'submitted' });
  await database.db.collection<typeof row>('payouts').insertOne(row);
  const environment = new MockActivityEnvironment();
  const withDeadline = () => {
    environment.cancel();
    return new Promise(() => undefined);
  };
  const silent: Client = Object.create(temporal, { withDeadline: { value: withDeadline } });
  const deps = { stores: database.stores, temporal: silent, now: () => new Date() };
  const run = environment.run(() => createClockActivities(deps).advanceResources(offset));
  await expect(run).rejects.toBeInstanceOf(CancelledFailure);
});
