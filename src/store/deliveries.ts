import type { Collection, Db } from 'mongodb';
import type { DeliveryStatus } from '../domain/event';
import { type IndexWork, makeIndexes } from '../mongo-indexes';
import type { EventDelivery } from './events';

const ROWS_MAX = 200;

/** Attempt to deliver an event, as the merchant may see it. */
export interface DeliveryDocument {
  event_id: string;
  /** 0 for the delivery that the event started, then one for each redelivery. */
  run: number;
  /** 1 to 12 within its run. */
  attempt: number;
  at: string;
  url: string;
  /** HTTP status; null when there was no whole answer. */
  status_code: number | null;
  /** Fault in words; null when the receiver answered. */
  error: string | null;
  duration_ms: number;
  response_excerpt: string;
  outcome: 'delivered' | 'failed';
  next_attempt_at: string | null;
}

/** Part of an event's document that tells of its attempts; they are kept in it. */
interface AttemptedEvent {
  _id: string;
  delivery: EventDelivery;
  /** The latest ones, in the order they were kept; absent before the first. */
  attempts?: Omit<DeliveryDocument, 'event_id'>[];
}

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;

export function createDeliveryStore(db: Db) {
  const events: Collection<AttemptedEvent> = db.collection<AttemptedEvent>('events');
  /** Attempts that earlier versions kept: read, and never written any more. */
  const earlier: Collection<DeliveryDocument> = db.collection<DeliveryDocument>('deliveries');
  const inEvent = async (event_id: string): Promise<DeliveryDocument[]> => {
    const event = await events.findOne({ _id: event_id }, { projection: { attempts: 1 } });
    return (event?.attempts ?? []).map((attempt) => ({ event_id, ...attempt }));
  };
  return {
    ensureIndexes: (work?: IndexWork) =>
      makeIndexes(
        earlier,
        [{ key: { event_id: 1, run: 1, attempt: 1 }, name: 'event_attempt', unique: true }],
        work,
      ),
    /**
     * Keeps an attempt once, counts it and sets the state of the delivery, in one write: a repeat
     * changes nothing, and finds it known.
     */
    keep: (row: DeliveryDocument): Promise<'kept' | 'known' | 'no_event'> => keep(events, row),
    /** Keeps the only attempt of a test event, which ends its delivery either way. */
    keepOnly: async ({ event_id, ...attempt }: DeliveryDocument): Promise<void> => {
      const { run, outcome } = attempt;
      const status = outcome === 'delivered' ? outcome : 'exhausted';
      const delivery = { status, attempts: 1, next_attempt_at: null, run } as const;
      await events.updateOne(
        { _id: event_id, 'delivery.attempts': 0 },
        { $set: { attempts: [attempt], delivery } },
      );
    },
    /** Latest attempt of a run; its number is how many the run has made. */
    last: async (event_id: string, run: number): Promise<DeliveryDocument | null> => {
      const latest = { sort: { attempt: -1 }, projection: { _id: 0 } } as const;
      const [kept, before] = await Promise.all([
        inEvent(event_id),
        earlier.findOne({ event_id, run }, latest),
      ]);
      const ofRun = kept.filter((row) => row.run === run).sort(newestFirst);
      return [...ofRun, ...(before === null ? [] : [before])].sort(newestFirst)[0] ?? null;
    },
    /** Lists the latest attempts of several events, oldest first. */
    forEvents: async (ids: readonly string[]): Promise<DeliveryDocument[]> => {
      const each = await Promise.all([
        events.find({ _id: { $in: [...ids] } }, { projection: { attempts: 1 } }).toArray(),
        earlier
          .find({ event_id: { $in: [...ids] } }, { projection: { _id: 0 } })
          .limit(ROWS_MAX)
          .toArray(),
      ]);
      const [found, before] = each;
      const kept = found.flatMap(({ _id: event_id, attempts = [] }) =>
        attempts.map((attempt) => ({ event_id, ...attempt })),
      );
      const keyOf = ({ event_id, run, attempt }: DeliveryDocument) =>
        `${event_id} ${run} ${attempt}`;
      const known = new Set(kept.map(keyOf));
      const rows = [...kept, ...before.filter((row) => !known.has(keyOf(row)))];
      return rows.sort((a, b) => (a.at < b.at ? -1 : 1));
    },
    /** Lists the latest attempts of an event, newest first. */
    forEvent: async (event_id: string): Promise<DeliveryDocument[]> => {
      const [kept, before] = await Promise.all([
        inEvent(event_id),
        earlier
          .find({ event_id }, { projection: { _id: 0 } })
          .sort({ run: -1, attempt: -1 })
          .limit(ROWS_MAX)
          .toArray(),
      ]);
      const isKept = ({ run, attempt }: DeliveryDocument) =>
        kept.some((row) => row.run === run && row.attempt === attempt);
      const rows = [...kept, ...before.filter((row) => !isKept(row))];
      return rows.sort(newestFirst).slice(0, ROWS_MAX);
    },
  };
}

function newestFirst(a: DeliveryDocument, b: DeliveryDocument): number {
  return b.run - a.run || b.attempt - a.attempt;
}

async function keep(
  events: Collection<AttemptedEvent>,
  { event_id, ...attempt }: DeliveryDocument,
): Promise<'kept' | 'known' | 'no_event'> {
  const { run, outcome, next_attempt_at } = attempt;
  const status: DeliveryStatus = outcome === 'delivered' ? 'delivered' : 'pending';
  // After a redelivery the last report of an earlier run only counts.
  const speaks = {
    $or: [{ $lte: ['$delivery.run', run] }, { $eq: ['$delivery.status', 'pending'] }],
  };
  const either = (said: string | null, field: string) => ({
    $cond: [speaks, { $literal: said }, field],
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
          'delivery.status': either(status, '$delivery.status'),
          'delivery.next_attempt_at': either(next_attempt_at, '$delivery.next_attempt_at'),
        },
      },
    ],
  );
  if (matchedCount === 1) return 'kept';
  return (await events.countDocuments({ _id: event_id }, { limit: 1 })) === 1
    ? 'known'
    : 'no_event';
}
