import type { ClientSession, Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';

/** Sum of the payouts of a day that count against a limit. */
interface PayoutDayDocument {
  _id: string;
  /** Minor units. */
  amount: number;
  expires_at: Date;
}

/** Day of UTC in one currency of an account's environment. */
export interface PayoutDay {
  account_id: string;
  livemode: boolean;
  currency: string;
  /** ISO 8601; its day counts. */
  created_at: string;
}

/** Longer than any payout may fail after it was made. */
const RETENTION_MS = 400 * 86_400_000;

function buildId({ account_id, livemode, currency, created_at }: PayoutDay): string {
  const env = livemode ? 'live' : 'sandbox';
  return `${account_id}:${env}:${currency}:${created_at.slice(0, 10)}`;
}

/** Sums by which the payout limits of accounts are held. */
export function createPayoutDayStore(db: Db) {
  const days: Collection<PayoutDayDocument> = db.collection<PayoutDayDocument>('payout_days');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        days,
        [{ key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 }],
        missing,
      ),
    /** Sum so far; minor units. */
    getSpent: async (day: PayoutDay): Promise<number> =>
      (await days.findOne({ _id: buildId(day) }))?.amount ?? 0,
    /**
     * Adds to the sum in the transaction of the payout; those at once contend for it.
     * @param amount minor units; below 0 gives back
     * @returns the sum after it
     */
    add: async (day: PayoutDay, amount: number, session: ClientSession): Promise<number> => {
      const expires_at = new Date(Date.parse(day.created_at) + RETENTION_MS);
      const after = await days.findOneAndUpdate(
        { _id: buildId(day) },
        { $inc: { amount }, $setOnInsert: { expires_at } },
        { upsert: true, returnDocument: 'after', session },
      );
      return after?.amount ?? amount;
    },
  };
}
