import type { Db } from 'mongodb';
import type { CallbackResource } from '../domain/callback/callback';
import { KINDS, RESOURCES } from '../domain/resources';
import { announcedBefore, NOT_REPEATED } from '../domain/statement';
import { createApprovalStore } from './approvals';
import { createAuditLogStore } from './audit';
import { createCallbackStore } from './callbacks';
import { createDeliveryStore } from './deliveries';
import { STUCK } from './list';
import { createMailStore, type MailCounts } from './mails';
import { createMovementStore, type Suspense } from './movements';
import { createScheduleRunStore } from './schedule-runs';
import type { OpenLines } from './statement-lines';
import { createStatementStore } from './statements';

export interface ServiceMetrics {
  backlog: number;
  /** Delay of the most overdue attempt; 0 without one. */
  backlog_age_seconds: number;
  stuck: { resource: string; livemode: string; reason: string; count: number }[];
  callbacks: { waits: string; connector: string; count: number }[];
  ledger: LedgerCheck | null;
  statement_lines: OpenLines[];
  suspense: Suspense[];
  schedules: { schedule: string; succeeded_at: string }[];
  /** Not decided on, or not carried out. */
  approvals: number;
  /** Watched acts of the last hour, live only. */
  acts: { act: string; count: number }[];
  mails: MailCounts;
}

const COUNTED_MAX = 10_000;
const READ_MS_MAX = 4_000;

export type MetricStore = ReturnType<typeof createMetricStore>;

export function createMetricStore(db: Db) {
  const deliveries = createDeliveryStore(db);
  const callbacks = createCallbackStore(db);
  const checks = createLedgerCheckStore(db);
  const statements = createStatementStore(db);
  const movements = createMovementStore(db);
  const scheduleRuns = createScheduleRunStore(db);
  const approvals = createApprovalStore(db);
  const auditLog = createAuditLogStore(db);
  const mailStore = createMailStore(db);
  const countStuck = (kind: CallbackResource) =>
    db
      .collection(RESOURCES[kind].collection)
      .aggregate<ServiceMetrics['stuck'][number]>(
        [
          { $match: STUCK },
          { $group: { _id: { reason: '$attention', livemode: '$livemode' }, count: { $sum: 1 } } },
          {
            $project: {
              _id: 0,
              resource: { $literal: kind },
              livemode: { $toString: '$_id.livemode' },
              reason: '$_id.reason',
              count: 1,
            },
          },
        ],
        { maxTimeMS: READ_MS_MAX },
      )
      .toArray();
  const countNotRepeated = async (now: Date): Promise<ServiceMetrics['stuck']> => {
    const rows = await statements.sumNotRepeated(announcedBefore(now));
    return [true, false].flatMap((livemode) => {
      const own = rows.filter((row) => row.livemode === livemode);
      const about = { resource: 'bank_account', livemode: String(livemode), reason: NOT_REPEATED };
      const count = own.reduce((sum, row) => sum + row.count, 0);
      return count === 0 ? [] : [{ ...about, count }];
    });
  };
  return {
    read: async (now: Date): Promise<ServiceMetrics> => {
      const received_before = new Date(now.getTime() - SIGNAL_DELAY_MS).toISOString();
      const [
        backlog,
        first,
        parked,
        unsignalled,
        ledger,
        statement_lines,
        suspense,
        runs,
        waiting,
        acts,
        mails,
        ...stuck
      ] = await Promise.all([
        deliveries.countPending(COUNTED_MAX),
        deliveries.firstDue(now.toISOString()),
        callbacks.countByConnector({ waits: 'parked' }),
        callbacks.countByConnector({ waits: 'unsignalled', received_before }),
        checks.last(),
        statements.countOpen(),
        movements.countSuspense(),
        scheduleRuns.list(),
        approvals.countWaiting(now),
        auditLog.countWatched(new Date(now.getTime() - WATCHED_MS).toISOString()),
        mailStore.count(),
        statements.countRefusals(),
        countNotRepeated(now),
        ...KINDS.map(countStuck),
      ]);
      return {
        backlog,
        backlog_age_seconds: getDelaySeconds(first, now),
        stuck: stuck.flat(),
        callbacks: [...parked, ...unsignalled],
        ledger,
        statement_lines,
        suspense,
        schedules: runs,
        approvals: waiting,
        acts,
        mails,
      };
    },
  };
}

/** Callbacks without a signal are counted from this age. */
const SIGNAL_DELAY_MS = 60_000;

const WATCHED_MS = 3_600_000;

function getDelaySeconds(due: string | undefined, now: Date): number {
  if (due === undefined) return 0;
  return Math.max(0, (now.getTime() - Date.parse(due)) / 1_000);
}

interface LedgerCheck {
  _id: 'last';
  checked_at: string;
  differences: number;
  /** Last verification that read everything again. */
  full_at?: string;
}

export function createLedgerCheckStore(db: Db) {
  const checks = db.collection<LedgerCheck>('ledger_checks');
  return {
    note: (checked_at: string, differences: number, full: boolean) =>
      checks.updateOne(
        { _id: 'last' },
        { $set: { checked_at, differences, ...(full && { full_at: checked_at }) } },
        { upsert: true },
      ),
    last: () => checks.findOne({ _id: 'last' }),
  };
}
