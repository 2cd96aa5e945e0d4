import type { Db } from 'mongodb';
import { z } from 'zod';
import type { CallbackResource } from '../domain/callback/callback';
import { KINDS, RESOURCES } from '../domain/resources';
import { createCallbackStore } from './callbacks';
import { createEventStore } from './events';
import { createLedgerCheckStore, type LedgerCheck } from './ledger-checks';
import { STUCK } from './resource';

/** Counts over all accounts, for operators. */
export interface ServiceMetrics {
  /** Events that are pending, 10,000 at most. */
  backlog: number;
  /** Time by which the most overdue attempt is late; 0 when none is. */
  backlog_age_seconds: number;
  stuck: { resource: string; livemode: string; reason: string; count: number }[];
  callbacks: { parked: number; unsignalled: number };
  ledger: LedgerCheck | null;
}

const COUNTED_MAX = 10_000;
const READ_MS_MAX = 4_000;

const Group = z.object({
  _id: z.object({ reason: z.string(), livemode: z.boolean() }),
  count: z.number(),
});

export type MetricStore = ReturnType<typeof createMetricStore>;

/** Reads the figures, each by an index of its own. */
export function createMetricStore(db: Db) {
  const events = createEventStore(db);
  const callbacks = createCallbackStore(db);
  const checks = createLedgerCheckStore(db);
  const countStuck = async (kind: CallbackResource): Promise<ServiceMetrics['stuck']> => {
    const groups = await db
      .collection(RESOURCES[kind].collection)
      .aggregate(
        [
          { $match: STUCK },
          {
            $group: {
              _id: { reason: '$attention', livemode: '$livemode' },
              count: { $sum: 1 },
            },
          },
        ],
        { maxTimeMS: READ_MS_MAX },
      )
      .toArray();
    return z
      .array(Group)
      .parse(groups)
      .map(({ _id: { reason, livemode }, count }) => ({
        resource: kind,
        livemode: String(livemode),
        reason,
        count,
      }));
  };
  return {
    read: async (now: Date): Promise<ServiceMetrics> => {
      const [backlog, first, parked, unsignalled, ledger, ...stuck] = await Promise.all([
        events.countPending(COUNTED_MAX),
        events.firstDue(now.toISOString()),
        callbacks.countWaiting({ waits: 'parked' }),
        callbacks.countWaiting({ waits: 'unsignalled', received_before: getSignalDeadline(now) }),
        checks.last(),
        ...KINDS.map(countStuck),
      ]);
      return {
        backlog,
        backlog_age_seconds: lateness(first?.delivery.next_attempt_at, now),
        stuck: stuck.flat(),
        callbacks: { parked, unsignalled },
        ledger,
      };
    },
  };
}

/** Younger callbacks are on their way. */
const ON_ITS_WAY_MS = 60_000;

function getSignalDeadline(now: Date): string {
  return new Date(now.getTime() - ON_ITS_WAY_MS).toISOString();
}

function lateness(due: string | null | undefined, now: Date): number {
  if (due === null || due === undefined) return 0;
  return Math.max(0, (now.getTime() - Date.parse(due)) / 1_000);
}
