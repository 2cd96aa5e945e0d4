import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import {
  PAYOUT_IN_FLIGHT,
  type PayoutAttention,
  type PayoutStatus,
  type Return,
} from '../domain/payout/payout';
import { type ResourceDocument, resourceStore } from './resource';
import { resourceIndexes } from './resource-indexes';

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
  /** Counts against the daily limit. */
  limited?: true;
  due_at: string;
}

export type PayoutStore = ReturnType<typeof createPayoutStore>;

export function createPayoutStore(db: Db) {
  const payouts = db.collection<PayoutDocument>('payouts');
  return {
    ...resourceStore<PayoutDocument, 'status' | 'method' | 'reference'>(payouts, PAYOUT_IN_FLIGHT),
    lastTo: (recipient_id: string) =>
      payouts.findOne({ recipient_id }, { sort: { created_at: -1 } }),
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
