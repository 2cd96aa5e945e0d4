import { randomUUID } from 'node:crypto';
import { Client, type ScheduleHandle } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { AuditResult } from '../../../src/domain/audit';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { findResources, restart } from '../../../src/service/orphans';
import { ensureSchedule, getScheduleId } from '../../../src/temporal/schedules';
import { recordEvents } from '../../cli/event-log';
import {
  openResourceSetting,
  patientClient,
  type ResourceSetting,
} from '../../cli/resource-setting';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { expiredPayment, openRecords } from '../../support/records';
import { temporalAddress } from '../../support/servers';

/** On the real server, whose schedule is paused: only this test starts audits. */
let setting: ResourceSetting;
let schedule: ScheduleHandle;
beforeAll(async () => {
  // Schedules run on live's queue.
  setting = await openResourceSetting({ environments: ['sandbox', 'live'] });
  const { temporal, lifecycleQueue } = setting.deps;
  schedule = temporal.schedule.getHandle(getScheduleId('audit', lifecycleQueue));
  expect(await ensureSchedule(temporal, 'audit', lifecycleQueue)).toBe('made');
  await schedule.pause('in a test');
});
afterAll(async () => {
  await schedule?.delete();
  await setting?.close();
});

const MINUTE_MS = 60_000;
const ALL_IS_WELL: AuditResult = {
  orphans: { checked: expect.any(Number), found: 0, named: [], walked_at: expect.any(String) },
  deliveries: { checked: 0, restarted: 0, named: [] },
  callbacks: { delivered: 0, waiting: 0, parked: 0, parked_lately: 0, named: [] },
  attention: null,
};

/** Lets the schedule start one now, and waits for its end. */
async function audit(history?: string) {
  const taken = async () => (await schedule.describe()).info;
  const before = (await taken()).numActionsTaken;
  await schedule.trigger();
  await eventually('the start', async () => (await taken()).numActionsTaken > before);
  const started = (await taken()).recentActions.at(-1)?.action.workflow;
  if (started === undefined) throw new Error('The schedule has started nothing.');
  const handle = setting.deps.temporal.workflow.getHandle<() => Promise<AuditResult>>(
    started.workflowId,
    started.firstExecutionRunId,
  );
  const result = await handle.result();
  const { typedSearchAttributes } = await handle.describe();
  expect(typedSearchAttributes.get(SEARCH_KEYS.resource)).toBe('audit');
  expect(typedSearchAttributes.get(SEARCH_KEYS.attention) ?? null).toBe(result.attention);
  if (history !== undefined) await saveHistory(handle, history);
  const metadata: { currentDetails?: string } = await handle.query('__temporal_workflow_metadata');
  return { result, details: metadata.currentDetails ?? '' };
}

/** As it is kept when its connector dies before the signal. */
async function keep(resource_id: string, minutesAgo: number): Promise<string> {
  const kept = await setting.service.stores.callbacks.insertOnce({
    connector: setting.service.connector,
    resource: 'payout',
    resource_id,
    name: 'completed',
    body: { callback_id: `cb_${randomUUID()}`, occurred_at: '2026-03-01T12:00:00.000Z' },
    received_at: new Date(Date.now() - minutesAgo * MINUTE_MS).toISOString(),
  });
  return kept._id;
}

test('what was forgotten is found; what is safe to repeat is mended, and a person is asked', async () => {
  const { shop, service, deps } = setting;
  const { callbacks, payouts, events } = service.stores;
  expect((await audit('schedule-audit')).result).toEqual(ALL_IS_WELL);

  const orphan = await setting.payout({ amount: 66_623 });
  await setting.terminate('payout', orphan);
  const unheard = await setting.payout({ amount: 66_623 });
  const late = await keep(unheard, 10);
  await keep(unheard, 1);
  const unreadable = await keep('no id of ours', 10);
  const parked = await keep(randomUUID(), 10);
  const old = await keep(randomUUID(), 8 * 24 * 60);
  await callbacks.park(old, 'no such payout at this connector');
  const [event] = await recordEvents(deps, shop.account_id, ['payment.settled']);

  const { result, details } = await audit('schedule-audit-orphans');
  expect(result).toEqual({
    orphans: {
      ...{ checked: expect.any(Number), found: 1, named: [`payout:${orphan}`] },
      walked_at: expect.any(String),
    },
    deliveries: { checked: 1, restarted: 1, named: [event?._id] },
    callbacks: {
      delivered: 1,
      waiting: 1,
      parked: 2,
      parked_lately: 1,
      named: [unreadable, parked],
    },
    attention: 'orphans_found',
  });
  expect(details).toMatch(/^⚠ \*\*orphans_found\*\*\n\n\d+ resources checked, 1 /);
  expect(details).toContain(
    `See \`orphan list\`, then \`orphan restart\`.\n\n- \`payout:${orphan}\``,
  );
  expect(details).toContain(
    `then \`callback deliver ID\`.\n\n- \`${unreadable}\`\n- \`${parked}\``,
  );
  expect((await callbacks.get(late))?.signalled_at).not.toBeNull();
  await eventually('the completion', async () => {
    return (await payouts.get(unheard))?.status === 'completed';
  });
  await eventually('the end of the delivery', async () => {
    // This merchant has no endpoint.
    return (await events.get(event?._id ?? ''))?.delivery.status === 'no_endpoint';
  });

  for await (const { orphans } of findResources(deps)) {
    for (const found of orphans) await restart(deps, found);
  }
  expect((await audit()).result).toMatchObject({
    orphans: { found: 0 },
    deliveries: { restarted: 0 },
    callbacks: { delivered: 0, waiting: 1, parked: 2, parked_lately: 1 },
    attention: 'callbacks_waiting',
  });
  await deps.db.collection('bank_callbacks').deleteMany({});
  const end = await audit();
  expect(end.result).toEqual(ALL_IS_WELL);
  expect(end.details).toMatch(/^\*\*All is well\.\*\*\n\n/);
});

test('late funds that no bank confirms to be back are overdue after five days', async () => {
  const { payments } = setting.service.stores;
  const records = await openRecords(undefined, setting.deps.db.databaseName);
  const accepted = async (daysAgo: number) => {
    const { payment_id } = await expiredPayment(records);
    const report = { callback_id: 'late', amount: 1_000, currency: 'EUR' };
    const at = new Date().toISOString();
    await records.payments.recordReceipt({ payment_id, at, reason: 'late', ...report });
    const version = (await payments.get(payment_id))?.version ?? 0;
    const reason = { attention: 'late_settlement_reversed', audit: null } as const;
    const attention_at = Date.now() - daysAgo * 24 * 60 * MINUTE_MS;
    await payments.setAttention(payment_id, { version, ...reason, attention_at });
    return payment_id;
  };
  const [late, lately, back] = [await accepted(6), await accepted(4), await accepted(6)];
  const reversal = { payment_id: back, at: new Date().toISOString(), by: 'back' };
  await records.payments.recordReversal(reversal);
  await audit();
  const reasons = await Promise.all(
    [late, lately, back].map(async (id) => (await payments.get(id))?.attention),
  );
  expect(reasons).toEqual([
    ...['late_reversal_overdue', 'late_settlement_reversed', 'late_settlement_reversed'],
  ]);
  await records.mongo.close();
});

test('a worker that starts makes the schedule once, and mends one that is different', async () => {
  const { lifecycleQueue } = setting.deps;
  const connection = await NativeConnection.connect({ address: temporalAddress() });
  const temporal = patientClient(new Client({ connection }));
  expect(await retryUntilDone(() => ensureSchedule(temporal, 'audit', lifecycleQueue))).toBe(
    'kept',
  );
  await schedule.update(({ action, ...previous }) => ({
    ...previous,
    spec: { intervals: [{ every: '1 day' }] },
    // As an earlier version made it.
    action: { ...action, taskQueue: lifecycleQueue },
  }));
  expect(await retryUntilDone(() => ensureSchedule(temporal, 'audit', lifecycleQueue))).toBe(
    'changed',
  );
  const { action, spec, state, policies } = await schedule.describe();
  expect(action).toMatchObject({
    taskQueue: `${lifecycleQueue}-live`,
    workflowId: `audit:${lifecycleQueue}`,
  });
  expect(spec.intervals).toEqual([expect.objectContaining({ every: 3_600_000 })]);
  expect([state.paused, state.note, policies.overlap]).toEqual([true, 'in a test', 'SKIP']);

  const other = `lifecycle-${randomUUID()}`;
  const both = [ensureSchedule(temporal, 'audit', other), ensureSchedule(temporal, 'audit', other)];
  expect((await Promise.all(both)).sort()).toEqual(['kept', 'made']);
  await temporal.schedule.getHandle(getScheduleId('audit', other)).delete();
  const nowhere = new Client({ connection, namespace: 'nowhere' });
  await expect(ensureSchedule(nowhere, 'audit', other)).rejects.toThrow();
  await connection.close();
});
