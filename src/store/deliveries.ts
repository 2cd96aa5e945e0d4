import type { Db } from 'mongodb';
import type { DeliveryStatus } from '../domain/webhook/event';
import type { EventDelivery } from './events';

const ROWS_MAX = 200;

export interface DeliveryDocument {
  event_id: string;
  /** 0 for the first delivery, then one for each redelivery. */
  run: number;
  attempt: number;
  at: string;
  /** First attempt of the run, in account time; present where the clock was moved. */
  first_at?: string;
  url: string;
  /** Null without a complete response. */
  status_code: number | null;
  error: string | null;
  duration_ms: number;
  response_excerpt: string;
  outcome: 'delivered' | 'failed';
  next_attempt_at: string | null;
}

interface AttemptedEvent {
  _id: string;
  delivery: EventDelivery;
  /** Latest attempts, in the order of their writes; absent before the first. */
  attempts?: Omit<DeliveryDocument, 'event_id'>[];
}

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;

export function createDeliveryStore(db: Db) {
  const events = db.collection<AttemptedEvent>('events');
  const readAttempts = async (ids: readonly string[]): Promise<DeliveryDocument[]> => {
    const rows = events.find({ _id: { $in: [...ids] } }, { projection: { attempts: 1 } });
    return (await rows.toArray()).flatMap(({ _id: event_id, attempts = [] }) =>
      attempts.map((attempt) => ({ event_id, ...attempt })),
    );
  };
  return {
    /** Stores an attempt once, counts it and sets the state of the delivery, in one write. */
    addAttempt: async (row: DeliveryDocument): Promise<'kept' | 'known' | 'no_event'> => {
      const { event_id, ...attempt } = row;
      const { run, outcome, next_attempt_at } = attempt;
      const status: DeliveryStatus = outcome === 'delivered' ? 'delivered' : 'pending';
      // After a redelivery, the late report of an earlier run changes only the count.
      const countsForStatus = {
        $or: [{ $lte: ['$delivery.run', run] }, { $eq: ['$delivery.status', 'pending'] }],
      };
      const chooseValue = (value: string | null, field: string) => ({
        $cond: [countsForStatus, { $literal: value }, field],
      });
      const { matchedCount } = await events.updateOne(
        {
          _id: event_id,
          attempts: { $not: { $elemMatch: { run, attempt: attempt.attempt } } },
        },
        [
          {
            $set: {
              attempts: {
                $slice: [
                  { $concatArrays: [{ $ifNull: ['$attempts', []] }, [{ $literal: attempt }]] },
                  -ROWS_MAX,
                ],
              },
              'delivery.attempts': { $add: ['$delivery.attempts', 1] },
              'delivery.status': chooseValue(status, '$delivery.status'),
              'delivery.next_attempt_at': chooseValue(next_attempt_at, '$delivery.next_attempt_at'),
            },
          },
        ],
      );
      if (matchedCount === 1) return 'kept';
      return (await events.countDocuments({ _id: event_id }, { limit: 1 })) === 1
        ? 'known'
        : 'no_event';
    },
    addOnlyAttempt: async ({ event_id, ...attempt }: DeliveryDocument): Promise<void> => {
      const { run, outcome } = attempt;
      const status = outcome === 'delivered' ? outcome : 'exhausted';
      const delivery = { status, attempts: 1, next_attempt_at: null, run } as const;
      await events.updateOne(
        { _id: event_id, 'delivery.attempts': 0 },
        { $set: { attempts: [attempt], delivery } },
      );
    },
    /** Returns the latest attempt of a run; its number is the count. */
    last: async (event_id: string, run: number): Promise<DeliveryDocument | null> => {
      const rows = (await readAttempts([event_id])).filter((row) => row.run === run);
      return rows.sort(newestFirst)[0] ?? null;
    },
    forEvents: async (ids: readonly string[]): Promise<DeliveryDocument[]> =>
      (await readAttempts(ids)).sort((a, b) => (a.at < b.at ? -1 : 1)),
    forEvent: async (event_id: string): Promise<DeliveryDocument[]> =>
      (await readAttempts([event_id])).sort(newestFirst),
  };
}

function newestFirst(a: DeliveryDocument, b: DeliveryDocument): number {
  return b.run - a.run || b.attempt - a.attempt;
}
