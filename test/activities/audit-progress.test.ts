import { randomUUID } from 'node:crypto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createAuditActivities } from '../../activities/schedules/audit';
import { connectTemporal } from '../../src/temporal/connect';
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
function audit(payments = database.stores.payments) {
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

test('an audit reports each callback, also one that it parks', async () => {
  for (let n = 0; n < COUNT; n += 1) {
    await database.stores.callbacks.insertOnce({
      ...{ connector: 'sandbox', resource: 'payout', resource_id: randomUUID(), name: 'sent' },
      body: { callback_id: `C${n}`, occurred_at: LONG_AGO },
      received_at: LONG_AGO,
    });
  }
  const { activities, environment, heartbeats } = audit();
  const found = await environment.run(activities.auditCallbacks);
  expect(found).toMatchObject({ delivered: 0, waiting: 0, parked: COUNT });
  expect(heartbeats).toHaveLength(COUNT);
});

test('an audit reports each late reversal that it flags, with the place from which a try continues', async () => {
  const overdue = Array.from({ length: COUNT }, (_, n) => paymentAt(n, LONG_AGO));
  const reportsBefore: number[] = [];
  const { activities, environment, heartbeats } = audit({
    ...database.stores.payments,
    listUnconfirmedReversals: async () => overdue,
    setAttention: async () => {
      reportsBefore.push(heartbeats.length);
      return true;
    },
  });
  await environment.run(activities.auditResources);
  expect(reportsBefore).toHaveLength(COUNT);
  expect(new Set(reportsBefore).size).toBe(COUNT);
  const place = { part: 'everything', began_at_ms: expect.any(Number), orphans: [] };
  expect(heartbeats.slice(-COUNT)).toEqual(Array(COUNT).fill(expect.objectContaining(place)));
});
