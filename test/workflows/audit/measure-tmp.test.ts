import { randomUUID } from 'node:crypto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { createAuditActivities } from '../../../activities/schedules/audit';
import type { PayoutDocument } from '../../../src/store/payouts';
import { storedPayout } from '../../api/payout-setting';
import { useDatabase } from '../../support/database';
import { useFixture } from '../../support/fixture';
import { temporalAddress } from '../../support/servers';

Runtime.install({ shutdownSignals: [], logger: new DefaultLogger('ERROR') });
const N = Number(process.env['AUDIT_N'] ?? 100000);
const database = useDatabase();
const server = useFixture(
  async () => ({ env: await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress() }) }),
  ({ env }) => env.teardown(),
);
test('measure', async () => {
  const payouts = database.db.collection<PayoutDocument>('payouts');
  for (let at = 0; at < N; at += 10_000) {
    await payouts.insertMany(Array.from({ length: 10_000 }, () => storedPayout({ account_id: 'acct_a' + at }, { status: 'submitted', due_at: '2126-01-01T00:00:00.000Z', position: randomUUID() })));
  }
  global.gc?.();
  const before = process.memoryUsage();
  let max = { rss: 0, heapUsed: 0 };
  const timer = setInterval(() => { const m = process.memoryUsage(); max = { rss: Math.max(max.rss, m.rss), heapUsed: Math.max(max.heapUsed, m.heapUsed) }; }, 200);
  const taskQueue = `m-${randomUUID()}`;
  const worker = await Worker.create({
    connection: server.env.nativeConnection, taskQueue,
    workflowsPath: require.resolve('../../../workflows/schedules/audit'),
    activities: createAuditActivities({ stores: database.stores, temporal: server.env.client, now: () => new Date(), lifecycleQueue: 'u', webhookQueue: 'u', log: { info: () => undefined, warn: () => undefined } }),
  });
  const began = Date.now();
  const result = await worker.runUntil(async () => await server.env.client.workflow.execute('audit', { taskQueue, workflowId: taskQueue }));
  clearInterval(timer);
  const mb = (n: number) => Math.round(n / 1e6);
  process.stderr.write(`MEASURED ${N} ${(Date.now() - began) / 1000}s before rss ${mb(before.rss)} heap ${mb(before.heapUsed)} max rss ${mb(max.rss)} heap ${mb(max.heapUsed)} ${JSON.stringify(result).slice(0, 300)}\n`);
}, 1_500_000);
