import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';

interface PayoutDayDocument {
  _id: string;
  /** Minor units. */
  amount: number;
  expires_at: Date;
}

/** UTC day, in one currency. */
export interface PayoutDay {
  account_id: string;
  livemode: boolean;
  currency: string;
  created_at: string;
}

/** Longer than a payout may take to fail. */
const RETENTION_MS = 400 * 86_400_000;

function buildId({ account_id, livemode, currency, created_at }: PayoutDay): string {
  const env = livemode ? 'live' : 'sandbox';
  return `${account_id}:${env}:${currency}:${created_at.slice(0, 10)}`;
}

export function createPayoutDayStore(db: Db) {
  const days = db.collection<PayoutDayDocument>('payout_days');
  return {
    ensureIndexes: indexBuilder(days, [
      { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    getSpent: async (day: PayoutDay): Promise<number> =>
      (await days.findOne({ _id: buildId(day) }))?.amount ?? 0,
    /**
     * Adds in the transaction of the payout: payouts at once have a write conflict.
     * @param amount minor units; below 0 releases
     * @returns the new sum
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
