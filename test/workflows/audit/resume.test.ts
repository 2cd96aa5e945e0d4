import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cancellationSignal } from '@temporalio/activity';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { createAuditActivities } from '../../../activities/schedules/audit';
import type { AuditResult } from '../../../src/domain/audit';
import type { Stores } from '../../../src/store';
import type { PayoutDocument } from '../../../src/store/payouts';
import { WORKER_OPTIONS } from '../../../worker/tuning';
import { storedPayout } from '../../api/payout-setting';
import { useDatabase } from '../../support/database';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { quietTemporal } from '../../support/quiet';
import { runWhile } from '../../support/run-while';
import { temporalAddress } from '../../support/servers';

quietTemporal();

const PAGE = 200;
const PAYOUTS = 3 * PAGE;
const FEW = 50;
/** Longer than the product's workers wait between two heartbeats, shorter than the SDK would. */
const REPORTED_MS_MAX = 40_000;
const FUTURE = '2126-03-01T12:00:00.000Z';
const PAST = '2026-03-01T12:00:00.000Z';

const database = useDatabase();
const server = useFixture(
  async () => ({
    env: await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress() }),
  }),
  ({ env }) => env.teardown(),
);

/** Payouts in progress, none with a workflow; the last one is overdue. */
beforeEach(async () => {
  const payouts = database.db.collection<PayoutDocument>('payouts');
  await payouts.deleteMany({});
  await database.db.collection('schedule_runs').deleteMany({});
  const rows = Array.from({ length: PAYOUTS }, (_, n) =>
    storedPayout(
      { account_id: 'acct_audit' },
      {
        _id: `payout-${`${n}`.padStart(4, '0')}`,
        status: 'submitted',
        due_at: n === PAYOUTS - 1 ? PAST : FUTURE,
      },
    ),
  );
  await payouts.insertMany(rows);
});

/** The first ones, and the one that is overdue. */
async function leaveOnly(count: number): Promise<void> {
  const payouts = database.db.collection<PayoutDocument>('payouts');
  const last = `payout-0${PAYOUTS - 1}`;
  await payouts.deleteMany({ _id: { $gte: `payout-00${count - 1}`, $lt: last } });
}

interface Auditing {
  taskQueue: string;
  stores?: Stores;
  walkMs?: number;
  /** From its stop on, until it gives up; by default it counts as killed. */
  stopMs?: number;
}

async function openWorker({ taskQueue, stores = database.stores, walkMs, stopMs = 200 }: Auditing) {
  return await Worker.create({
    connection: server.env.nativeConnection,
    taskQueue,
    workflowsPath: require.resolve('../../../workflows/schedules/audit'),
    activities: createAuditActivities({
      ...{ stores, temporal: server.env.client, now: () => new Date() },
      ...{ lifecycleQueue: 'unused', webhookQueue: 'unused' },
      log: { info: () => undefined, warn: () => undefined },
      ...(walkMs === undefined ? {} : { walkMs }),
    }),
    maxHeartbeatThrottleInterval: WORKER_OPTIONS.maxHeartbeatThrottleInterval,
    shutdownGraceTime: 100,
    shutdownForceTime: stopMs,
  });
}

const startAudit = (taskQueue: string) =>
  server.env.client.workflow.start<() => Promise<AuditResult>>('audit', {
    taskQueue,
    workflowId: `audit-${randomUUID()}`,
  });

const forever = () => new Promise<never>(() => undefined);

/** Stores that note each page of payouts, and wait at the one after `last`. */
function watchPages(last = '~', wait: () => Promise<unknown> = forever) {
  const pages: string[] = [];
  let isStuck: () => void = () => undefined;
  const stuck = new Promise<void>((resolve) => {
    isStuck = resolve;
  });
  const inFlight: Stores['payouts']['inFlight'] = (after, limit) => {
    const cursor = database.stores.payouts.inFlight(after, limit);
    pages.push(after);
    const isOverduePart = pages.filter((page) => page === '').length < 2;
    if (isOverduePart || after < last) return cursor;
    isStuck();
    const read = cursor.toArray.bind(cursor);
    cursor.toArray = async () => {
      await wait();
      return await read();
    };
    return cursor;
  };
  const payouts = { ...database.stores.payouts, inFlight };
  return { stores: { ...database.stores, payouts }, pages, stuck };
}

test('an audit whose worker is killed goes on where that one was', async () => {
  const taskQueue = `audit-${randomUUID()}`;
  const firstPage = `payout-0${PAGE - 1}`;
  const killed = watchPages(firstPage);
  const first = await openWorker({ taskQueue, stores: killed.stores });
  const handle = await startAudit(taskQueue);
  let isReported = false;
  const untilStuck = runWhile(first, async () => {
    await killed.stuck;
    isReported = await eventually(
      'the heartbeat of the page before',
      async () => {
        const { raw } = await handle.describe();
        const [details] = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads ?? [];
        const text = Buffer.from(details?.data ?? '').toString();
        return text.includes('"everything"') && text.includes(`"after":"${firstPage}"`);
      },
      REPORTED_MS_MAX,
    );
  });
  await expect(untilStuck).rejects.toThrow();
  expect(isReported).toBe(true);
  const next = watchPages();
  const second = await openWorker({ taskQueue, stores: next.stores });
  const { orphans } = await runWhile(second, () => handle.result());
  // It looks neither at what is overdue again, nor at the first page.
  expect(next.pages).toEqual([firstPage, 'payout-0399', 'payout-0599']);
  expect(orphans).toMatchObject({ checked: PAYOUTS, found: PAYOUTS });
  expect(orphans.named[0]).toBe(`payout:payout-0${PAYOUTS - 1}`);
});

test('an audit ends as its worker stops, and the next worker goes on after its last page', async () => {
  const taskQueue = `audit-${randomUUID()}`;
  const firstPage = `payout-0${PAGE - 1}`;
  const stopped = watchPages(firstPage, () => once(cancellationSignal(), 'abort'));
  const first = await openWorker({ taskQueue, stores: stopped.stores, stopMs: 20_000 });
  const handle = await startAudit(taskQueue);
  await runWhile(first, () => stopped.stuck);
  const [pending] = (await handle.describe()).raw.pendingActivities ?? [];
  expect(pending?.lastFailure?.applicationFailureInfo?.type).toBe('WorkerShutdown');
  expect(stopped.pages.at(-1)).toBe(firstPage);
  const next = watchPages();
  const second = await openWorker({ taskQueue, stores: next.stores });
  const { orphans } = await runWhile(second, () => handle.result());
  expect(next.pages).toEqual(['payout-0219', 'payout-0419']);
  expect(orphans).toMatchObject({ checked: PAYOUTS, found: PAYOUTS });
});

test('each run checks what is overdue and goes on with the rest; it reports what others found', async () => {
  const taskQueue = `audit-${randomUUID()}`;
  const worker = await openWorker({ taskQueue, walkMs: 0 });
  await leaveOnly(FEW);
  await runWhile(worker, async () => {
    const run = async () => (await (await startAudit(taskQueue)).result()).orphans;
    const runs = [await run()];
    while (runs.at(-1)?.walked_at === null && runs.length < FEW) runs.push(await run());
    // A few in each run; those that earlier runs have found are checked again.
    const found = runs.map((each) => each.found);
    expect(found).toEqual([...found].sort((a, b) => a - b));
    expect(runs[0]?.named[0]).toBe(`payout:payout-0${PAYOUTS - 1}`);
    expect(found.at(-1)).toBe(FEW);
    expect(runs.length).toBeGreaterThan(2);
    expect(await database.stores.scheduleRuns.readWalk()).toMatchObject({ place: null });
    const names = (await database.stores.scheduleRuns.list()).map(({ schedule }) => schedule);
    expect(names.sort()).toEqual(['audit', 'audit_walk']);
  });
});

test('an orphan that has a workflow again is reported no more', async () => {
  const taskQueue = `audit-${randomUUID()}`;
  const worker = await openWorker({ taskQueue });
  await runWhile(worker, async () => {
    const run = async () => (await (await startAudit(taskQueue)).result()).orphans;
    expect((await run()).found).toBe(PAYOUTS);
    await database.db
      .collection<PayoutDocument>('payouts')
      .updateMany({ due_at: FUTURE }, { $set: { status: 'completed' } });
    expect(await run()).toMatchObject({ found: 1, named: [`payout:payout-0${PAYOUTS - 1}`] });
    expect((await database.stores.scheduleRuns.readWalk()).orphans).toHaveLength(1);
  });
});
