import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import {
  PAYOUT_IN_FLIGHT,
  type PayoutAttention,
  type PayoutStatus,
  type Return,
  type StoredVerification,
} from '../domain/payout/payout';
import { resourceIndexes } from './list';
import { type ResourceDocument, resourceStore } from './resource';

/** @see docs/api.md#payouts */
export interface PayoutDocument extends ResourceDocument<PayoutStatus, PayoutAttention> {
  /** Minor units. */
  amount: number;
  /** Minor units, in addition to the amount. */
  fee: number;
  recipient_id: string;
  balance_account: string;
  reference: string | null;
  metadata: string;
  returned: Return | null;
  /** Minor units, where an operator booked a smaller amount. */
  returned_amount?: number | null;
  /** Time of the capture; null while the money is only reserved. */
  sent_at: string | null;
  completed_at: string | null;
  /** Absent before a bank has checked the recipient's name. */
  verification?: StoredVerification;
  /** Counted in the sum of its day; absent on payouts made before all were counted without a limit. */
  limited?: true;
  due_at: string;
}

export type PayoutStore = ReturnType<typeof createPayoutStore>;

export function createPayoutStore(db: Db) {
  const payouts = db.collection<PayoutDocument>('payouts');
  return {
    ...resourceStore<PayoutDocument, 'status' | 'method' | 'reference'>(payouts, PAYOUT_IN_FLIGHT),
    /** Lists those that have no result yet, of the bank or an operator. */
    listUnsent: (ids: readonly string[]): Promise<string[]> =>
      payouts.distinct('_id', {
        _id: { $in: [...ids] },
        status: { $in: ['created', 'submitted'] },
      }),
    lastTo: (recipient_id: string) =>
      payouts.findOne({ recipient_id }, { sort: { created_at: -1 } }),
    listVerifications: (ids: readonly string[]) =>
      payouts
        .find({ _id: { $in: [...ids] } })
        .project<Pick<PayoutDocument, '_id' | 'account_id' | 'verification'>>({
          ...{ account_id: 1, verification: 1 },
        })
        .toArray(),
    hasInFlight: async (recipient_id: string): Promise<boolean> => {
      const status = { $in: [...PAYOUT_IN_FLIGHT] };
      return (await payouts.findOne({ recipient_id, status })) !== null;
    },
    ensureIndexes: indexBuilder(payouts, [
      ...resourceIndexes(PAYOUT_IN_FLIGHT, 'status', 'method', 'reference'),
      { key: { recipient_id: 1, created_at: -1 }, name: 'recipient' },
    ]),
  };
}

interface PayoutDayDocument {
  _id: string;
  /** Minor units. */
  amount: number;
  expires_at: Date;
}

/** UTC day, in one currency. */
interface PayoutDay {
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
