import type { Db } from 'mongodb';
import { z } from 'zod';
import type { CallbackResource } from '../domain/callback/callback';
import { KINDS, RESOURCES } from '../domain/resources';
import { createCallbackStore } from './callbacks';
import { createEventStore } from './events';
import { createLedgerCheckStore, type LedgerCheck } from './ledger-checks';
import { STUCK } from './resource';

export interface ServiceMetrics {
  /** Pending events, 10,000 at most. */
  backlog: number;
  /** Delay of the most overdue attempt; 0 without one. */
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

/** Reads metrics of all accounts, each by its own index. */
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
          { $group: { _id: { reason: '$attention', livemode: '$livemode' }, count: { $sum: 1 } } },
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

function getSignalDeadline(now: Date): string {
  return new Date(now.getTime() - SIGNAL_DELAY_MS).toISOString();
}

function getDelaySeconds(due: string | null | undefined, now: Date): number {
  if (due === null || due === undefined) return 0;
  return Math.max(0, (now.getTime() - Date.parse(due)) / 1_000);
}
