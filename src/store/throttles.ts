import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';

interface ThrottleDocument {
  _id: string;
  count: number;
  ends_at: Date;
}

export interface Limit {
  max: number;
  windowMs: number;
}

export type ThrottleStore = ReturnType<typeof createThrottleStore>;

/** Counts for all processes, also across restarts. */
export function createThrottleStore(db: Db) {
  const throttles = db.collection<ThrottleDocument>('dashboard_throttles');
  return {
    ensureIndexes: indexBuilder(throttles, [
      { key: { ends_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    /**
     * Counts before the attempt, so that parallel attempts are limited, too.
     * @returns ms to wait; 0 when the attempt may be made
     */
    count: async (name: string, { max, windowMs }: Limit, now: Date): Promise<number> => {
      const fresh = { $lte: [{ $ifNull: ['$ends_at', now] }, now] };
      const ends = new Date(now.getTime() + windowMs);
      const throttle = await throttles.findOneAndUpdate(
        { _id: name },
        [
          {
            $set: {
              count: { $cond: [fresh, 1, { $add: ['$count', 1] }] },
              ends_at: { $cond: [fresh, ends, '$ends_at'] },
            },
          },
        ],
        { upsert: true, returnDocument: 'after' },
      );
      if (throttle === null || throttle.count <= max) return 0;
      return throttle.ends_at.getTime() - now.getTime();
    },
    /** @returns ms to wait; 0 when another attempt may be counted */
    wait: async (
      counters: readonly (readonly [name: string, Limit])[],
      now: Date,
    ): Promise<number> => {
      const limits = new Map(counters);
      const stored = await throttles.find({ _id: { $in: [...limits.keys()] } }).toArray();
      const waits = stored.flatMap(({ _id, count, ends_at }) => {
        const isOver = count >= (limits.get(_id)?.max ?? Number.POSITIVE_INFINITY);
        return isOver ? [ends_at.getTime() - now.getTime()] : [];
      });
      return Math.max(0, ...waits);
    },
    decrement: (name: string) =>
      throttles.updateOne({ _id: name, count: { $gt: 0 } }, { $inc: { count: -1 } }),
    /** Opens a counter whose attempts count apart until the window ends. */
    open: (name: string, { windowMs }: Limit, now: Date) =>
      throttles.updateOne(
        { _id: name },
        { $set: { count: 0, ends_at: new Date(now.getTime() + windowMs) } },
        { upsert: true },
      ),
    isOpen: async (name: string, { max }: Limit, now: Date): Promise<boolean> =>
      (await throttles.findOne({ _id: name, count: { $lt: max }, ends_at: { $gt: now } })) !== null,
    clear: (name: string) => throttles.deleteOne({ _id: name }),
    /** Clears the counter, and those whose names go on after a colon. */
    clearAll: (name: string) =>
      throttles.deleteMany({
        $or: [{ _id: name }, { _id: { $gte: `${name}:`, $lt: `${name};` } }],
      }),
  };
}
