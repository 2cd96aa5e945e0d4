import type { Collection, Db } from 'mongodb';
import { makeIndexes, type TakeBuild } from '../mongo-indexes';

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

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;

export function createDeliveryStore(db: Db) {
  const deliveries: Collection<DeliveryDocument> = db.collection<DeliveryDocument>('deliveries');
  return {
    ensureIndexes: (later?: TakeBuild) =>
      makeIndexes(
        deliveries,
        [{ key: { event_id: 1, run: 1, attempt: 1 }, name: 'event_attempt', unique: true }],
        later,
      ),
    /** Keeps an attempt once: a repeat of the same one changes nothing. */
    keep: async (row: DeliveryDocument): Promise<void> => {
      const { event_id, run, attempt } = row;
      const once = { upsert: true };
      await deliveries.updateOne({ event_id, run, attempt }, { $setOnInsert: row }, once);
    },
    /** Counts the attempts for an event in all its runs. */
    count: (event_id: string): Promise<number> => deliveries.countDocuments({ event_id }),
    /** Latest attempt of a run; its number is how many the run has made. */
    last: (event_id: string, run: number) =>
      deliveries.findOne({ event_id, run }, { sort: { attempt: -1 } }),
    /** Lists the latest attempts of an event, newest first. */
    forEvent: (event_id: string) =>
      deliveries.find({ event_id }).sort({ run: -1, attempt: -1 }).limit(ROWS_MAX).toArray(),
  };
}
