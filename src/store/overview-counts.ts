import type { Collection } from 'mongodb';
import type { NamedIndex } from '../base/mongo-indexes';
import { PAYMENT_STATUSES, type PaymentStatus } from '../domain/payment/payment';
import { LIST_MS_MAX, OWNER } from './list';

/** Covers the query of the volume per day. */
export const SETTLED_DAY: NamedIndex = {
  key: { ...OWNER, status: 1, settled_at: 1, currency: 1, amount: 1, settled_amount: 1 },
  name: 'settled_day',
  partialFilterExpression: { status: 'settled' },
};

export interface SettledDay {
  /** `YYYY-MM-DD` */
  day: string;
  currency: string;
  payments: number;
  /** Minor units. */
  amount: number;
}

export interface OverviewCounts {
  settledDays: SettledDay[];
  today: { status: PaymentStatus; payments: number }[];
  events: number;
  exhausted: number;
  waiting: number;
}

/** Counts are cached up to this age, since they read many rows. */
export const OVERVIEW_MS = 10_000;

export function paymentMetrics(payments: Pick<Collection, 'aggregate'>) {
  return {
    settledByDay: (account_id: string, livemode: boolean, since: string): Promise<SettledDay[]> =>
      payments
        .aggregate<SettledDay>(
          [
            { $match: { account_id, livemode, status: 'settled', settled_at: { $gte: since } } },
            {
              $group: {
                _id: { day: { $substrBytes: ['$settled_at', 0, 10] }, currency: '$currency' },
                payments: { $sum: 1 },
                amount: { $sum: { $ifNull: ['$settled_amount', '$amount'] } },
              },
            },
            {
              $replaceWith: {
                $mergeObjects: ['$_id', { payments: '$payments', amount: '$amount' }],
              },
            },
            { $sort: { day: 1, currency: 1 } },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
        .toArray(),
    countByStatus: (account_id: string, livemode: boolean, since: string) =>
      payments
        .aggregate<{ status: PaymentStatus; payments: number }>(
          [
            {
              $match: {
                account_id,
                livemode,
                status: { $in: [...PAYMENT_STATUSES] },
                position: { $gte: since },
              },
            },
            { $group: { _id: '$status', payments: { $sum: 1 } } },
            { $project: { _id: 0, status: '$_id', payments: 1 } },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
        .toArray(),
  };
}
