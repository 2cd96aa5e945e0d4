import { randomUUID } from 'node:crypto';
import { CancelledFailure } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { createClockActivities } from '../../../activities/clock';
import { createAuditActivities } from '../../../activities/schedules/audit';
import type { AuditResult, OrphanFindings } from '../../../src/domain/audit';
import type { Stores } from '../../../src/store';
import type { PayoutDocument } from '../../../src/store/payouts';
import { WORKER_OPTIONS } from '../../../worker/create-worker';
import { storedPayout } from '../../api/payout-setting';
import { workflowBundles } from '../../support/bundle';
import { useDatabase } from '../../support/database';
import { paymentAt } from '../../support/list-rows';
import { mockActivityEnvironment } from '../../support/quiet';
import { runWhile } from '../../support/run-while';
import { useRealServer } from '../webhook/setting';

const PAGE = 200;
const PAYOUTS = 3 * PAGE;
/** The last payout of the first page. */
const FIRST_PAGE = `payout-0${PAGE - 1}`;
/** The only payout that is overdue. */
const OVERDUE = `payout-0${PAYOUTS - 1}`;
const FUTURE = '2126-03-01T12:00:00.000Z';
const PAST = '2026-03-01T12:00:00.000Z';

const database = useDatabase();
const server = useRealServer();
const payouts = () => database.db.collection<PayoutDocument>('payouts');

function buildActivities(stores: Stores = database.stores, more: { walkMs?: number } = {}) {
  return createAuditActivities({
    ...{ stores, temporal: server.env.client, now: () => new Date(), ...more },
    ...{ lifecycleQueue: 'unused', webhookQueue: 'unused' },
    log: { info: () => undefined, warn: () => undefined },
  });
}

/** Runs an activity of the audit. */
function openEnvironment() {
  const heartbeats: unknown[] = [];
  const environment = mockActivityEnvironment();
  environment.on('heartbeat', (details: unknown) => heartbeats.push(structuredClone(details)));
  return { environment, heartbeats };
}

// First, while there are no payouts.
describe('an activity', () => {
  const COUNT = 3;

  test('sends a heartbeat for each callback that it audits, also for one that it parks', async () => {
    for (let n = 0; n < COUNT; n += 1) {
      await database.stores.callbacks.insertOnce({
        ...{ connector: 'sandbox', resource: 'payout', resource_id: randomUUID(), name: 'sent' },
        body: { callback_id: `C${n}`, occurred_at: PAST },
        received_at: PAST,
      });
    }
    const { environment, heartbeats } = openEnvironment();
    const result = await environment.run(buildActivities().auditCallbacks);
    expect(result).toMatchObject({ delivered: 0, waiting: 0, parked: COUNT });
    expect(heartbeats).toHaveLength(COUNT);
  });

  test('sends a heartbeat for each late reversal, with the place from which a retry continues', async () => {
    const { environment, heartbeats } = openEnvironment();
    const heartbeatsBefore: number[] = [];
    const payments: Stores['payments'] = {
      ...database.stores.payments,
      listSentBack: async () => Array.from({ length: COUNT }, (_, n) => paymentAt(n, PAST)),
      markAttention: async () => {
        heartbeatsBefore.push(heartbeats.length);
        return true;
      },
    };
    const keepLate = async (ids: readonly string[]) => [...ids];
    const movements: Stores['movements'] = { ...database.stores.movements, keepLate };
    const { auditResources } = buildActivities({ ...database.stores, payments, movements });
    await environment.run(auditResources);
    expect(heartbeatsBefore).toHaveLength(COUNT);
    expect(new Set(heartbeatsBefore).size).toBe(COUNT);
    const place = { part: 'everything', began_at_ms: expect.any(Number), orphans: [] };
    expect(heartbeats.slice(-COUNT)).toEqual(Array(COUNT).fill(expect.objectContaining(place)));
  });

  test('that advances a sandbox clock ends when its worker stops, though no workflow answers', async () => {
    const offset = { account_id: 'acct_clock', offset_ms: 60_000 };
    await payouts().insertOne(storedPayout(offset, { status: 'submitted' }));
    const environment = mockActivityEnvironment();
    const withDeadline = () => {
      environment.cancel();
      return new Promise(() => undefined);
    };
    const silent = { withDeadline: { value: withDeadline } };
    const temporal: Client = Object.create(server.env.client, silent);
    const deps = { stores: database.stores, temporal, now: () => new Date() };
    const run = environment.run(() => createClockActivities(deps).advanceResources(offset));
    await expect(run).rejects.toBeInstanceOf(CancelledFailure);
  });
});

describe('an audit of payouts in progress without a workflow', () => {
  beforeEach(async () => {
    await payouts().deleteMany({});
    await database.db.collection('schedule_runs').deleteMany({});
    const rows = Array.from({ length: PAYOUTS }, (_, n) => {
      const _id = `payout-${`${n}`.padStart(4, '0')}`;
      const due_at = _id === OVERDUE ? PAST : FUTURE;
      return storedPayout({ account_id: 'acct_audit' }, { _id, status: 'submitted', due_at });
    });
    await payouts().insertMany(rows);
  });

  const openWorker = async (taskQueue: string, more: { walkMs?: number } = {}) =>
    await Worker.create({
      connection: server.env.nativeConnection,
      taskQueue,
      workflowBundle: (await workflowBundles()).lifecycle,
      activities: buildActivities(database.stores, more),
    });

  const openQueue = () => `audit-${randomUUID()}`;
  const readOrphans = async (taskQueue: string) => {
    const options = { taskQueue, workflowId: openQueue() };
    const { workflow } = server.env.client;
    return (await workflow.execute<() => Promise<AuditResult>>('audit', options)).orphans;
  };

  /** Builds stores that note each page of payouts, and hang at the one after `last`. */
  function watchPages(last = '~') {
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
      cursor.toArray = () => new Promise<never>(() => undefined);
      return cursor;
    };
    const watched = { ...database.stores.payouts, inFlight };
    return { stores: { ...database.stores, payouts: watched }, pages, stuck };
  }

  test('whose worker is killed continues from the page of its last heartbeat', async () => {
    const killed = watchPages(FIRST_PAGE);
    const first = openEnvironment();
    void first.environment.run(buildActivities(killed.stores).auditResources);
    await killed.stuck;
    const heartbeatDetails = first.heartbeats.at(-1);
    expect(heartbeatDetails).toMatchObject({ part: 'everything', place: { after: FIRST_PAGE } });
    const next = watchPages();
    const second = mockActivityEnvironment({ heartbeatDetails });
    const { auditResources } = buildActivities(next.stores);
    const orphans: OrphanFindings = await second.run(auditResources);
    // It looks neither at what is overdue again, nor at the first page.
    expect(next.pages).toEqual([FIRST_PAGE, 'payout-0399', 'payout-0599']);
    expect(orphans).toMatchObject({ checked: PAYOUTS, found: PAYOUTS });
    expect(orphans.named[0]).toBe(`payout:${OVERDUE}`);
    // A killed worker's later progress is repeated.
    expect(WORKER_OPTIONS.maxHeartbeatThrottleInterval).toBe('10s');
  });

  test('checks in each run what is overdue and a part of the rest, and names what others found', async () => {
    const taskQueue = openQueue();
    const worker = await openWorker(taskQueue, { walkMs: 0 });
    const few = 50;
    await payouts().deleteMany({ _id: { $gte: `payout-00${few - 1}`, $lt: OVERDUE } });
    await runWhile(worker, async () => {
      const runs = [await readOrphans(taskQueue)];
      while (runs.at(-1)?.walked_at === null && runs.length < few) {
        runs.push(await readOrphans(taskQueue));
      }
      const counts = runs.map((each) => each.found);
      expect(counts).toEqual([...counts].sort((a, b) => a - b));
      expect(runs[0]?.named[0]).toBe(`payout:${OVERDUE}`);
      expect(counts.at(-1)).toBe(few);
      expect(runs.length).toBeGreaterThan(2);
      expect(await database.stores.scheduleRuns.readWalk()).toMatchObject({ place: null });
      const names = (await database.stores.scheduleRuns.list()).map(({ schedule }) => schedule);
      expect(names.sort()).toEqual(['audit', 'audit_walk']);
    });
  });

  test('reports no orphan that has ended since', async () => {
    const taskQueue = openQueue();
    const worker = await openWorker(taskQueue);
    await runWhile(worker, async () => {
      expect((await readOrphans(taskQueue)).found).toBe(PAYOUTS);
      await payouts().updateMany({ due_at: FUTURE }, { $set: { status: 'completed' } });
      const left = { found: 1, named: [`payout:${OVERDUE}`] };
      expect(await readOrphans(taskQueue)).toMatchObject(left);
      expect((await database.stores.scheduleRuns.readWalk()).orphans).toHaveLength(1);
    });
  });
});
