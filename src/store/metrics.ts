import type { Db } from 'mongodb';
import type { CallbackResource } from '../domain/banks/callback';
import {
  announcedBefore,
  groupByOldest,
  LINES_OPEN,
  NOT_REPEATED,
} from '../domain/banks/statement';
import { KINDS, RESOURCES } from '../domain/resources';
import { createStores } from '.';

import { countBy, STUCK } from './list';
import type { MailCounts } from './mails';
import type { Suspense } from './movements';

import type { OpenLines } from './statement-lines';

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

export type MetricStore = ReturnType<typeof createMetricStore>;

export function createMetricStore(db: Db) {
  const stores = createStores(db);
  const { bankAccounts, deliveries, callbacks, statements } = stores;
  const countStuck = (kind: CallbackResource) =>
    countBy<ServiceMetrics['stuck'][number]>(db.collection(RESOURCES[kind].collection), STUCK, {
      resource: { $literal: kind },
      livemode: '$livemode',
      reason: '$attention',
    });
  const countByEnv = (reason: string, rows: readonly { livemode: boolean; count: number }[]) =>
    [true, false].flatMap((livemode) => {
      const own = rows.filter((row) => row.livemode === livemode);
      const about = { resource: 'bank_account', livemode: String(livemode), reason };
      const count = own.reduce((sum, row) => sum + row.count, 0);
      return count === 0 ? [] : [{ ...about, count }];
    });
  const countNotRepeated = async (now: Date) =>
    countByEnv(NOT_REPEATED, await statements.sumNotRepeated(announcedBefore(now)));
  const countLinesOpen = async (now: Date) => {
    const groups = groupByOldest(await bankAccounts.list(), now);
    return countByEnv(LINES_OPEN, await statements.sumOverdue(groups));
  };
  const countAwaited = async (): Promise<ServiceMetrics['stuck']> => {
    const files = await stores.capabilities.listAwaited();
    const about = files.map(({ livemode, reason }) => `${livemode} ${reason}`);
    return [...new Set(about)].map((each) => {
      const [livemode = '', reason = ''] = each.split(' ');
      const count = about.filter((other) => other === each).length;
      return { resource: 'sepa_file', livemode, reason, count };
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
        createLedgerCheckStore(db).last(),
        statements.countOpen(),
        stores.movements.countSuspense(),
        stores.scheduleRuns.list(),
        stores.approvals.countWaiting(now),
        stores.auditLog.countWatched(new Date(now.getTime() - WATCHED_MS).toISOString()),
        stores.mails.count(),
        statements.countRefusals(),
        countNotRepeated(now),
        countAwaited(),
        countLinesOpen(now),
        ...KINDS.map(countStuck),
      ]);
      return {
        backlog,
        backlog_age_seconds:
          first === undefined ? 0 : Math.max(0, (now.getTime() - Date.parse(first)) / 1_000),
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
