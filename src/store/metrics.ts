import type { Db } from 'mongodb';
import type { CallbackResource } from '../domain/callback/callback';
import { KINDS, RESOURCES } from '../domain/resources';
import { createCallbackStore } from './callbacks';
import { createEventStore } from './events';
import { STUCK } from './resource';

export interface ServiceMetrics {
  backlog: number;
  /** Delay of the most overdue attempt; 0 without one. */
  backlog_age_seconds: number;
  stuck: { resource: string; livemode: string; reason: string; count: number }[];
  callbacks: { parked: number; unsignalled: number };
  ledger: LedgerCheck | null;
}

const COUNTED_MAX = 10_000;
const READ_MS_MAX = 4_000;

export type MetricStore = ReturnType<typeof createMetricStore>;

export function createMetricStore(db: Db) {
  const events = createEventStore(db);
  const callbacks = createCallbackStore(db);
  const checks = createLedgerCheckStore(db);
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
  return {
    read: async (now: Date): Promise<ServiceMetrics> => {
      const received_before = new Date(now.getTime() - SIGNAL_DELAY_MS).toISOString();
      const [backlog, first, parked, unsignalled, ledger, ...stuck] = await Promise.all([
        events.countPending(COUNTED_MAX),
        events.firstDue(now.toISOString()),
        callbacks.countWaiting({ waits: 'parked' }),
        callbacks.countWaiting({ waits: 'unsignalled', received_before }),
        checks.last(),
        ...KINDS.map(countStuck),
      ]);
      return {
        backlog,
        backlog_age_seconds: getDelaySeconds(first?.delivery.next_attempt_at, now),
        stuck: stuck.flat(),
        callbacks: { parked, unsignalled },
        ledger,
      };
    },
  };
}

/** Age from which a callback without a signal is counted. */
const SIGNAL_DELAY_MS = 60_000;

function getDelaySeconds(due: string | null | undefined, now: Date): number {
  if (due === null || due === undefined) return 0;
  return Math.max(0, (now.getTime() - Date.parse(due)) / 1_000);
}

export interface LedgerCheck {
  _id: 'last';
  checked_at: string;
  differences: number;
}

export function createLedgerCheckStore(db: Db) {
  const checks = db.collection<LedgerCheck>('ledger_checks');
  return {
    note: (checked_at: string, differences: number) =>
      checks.updateOne({ _id: 'last' }, { $set: { checked_at, differences } }, { upsert: true }),
    last: () => checks.findOne({ _id: 'last' }),
  };
}
