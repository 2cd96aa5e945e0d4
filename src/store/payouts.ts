import type { Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import {
  PAYOUT_IN_FLIGHT,
  type PayoutAttention,
  type PayoutStatus,
  type Return,
} from '../domain/payout/payout';
import {
  inFlightIndex,
  type ListFilter,
  listIndexes,
  NEEDS_ATTENTION,
  type ResourceDocument,
  resourceStore,
  STUCK_INDEX,
  UPDATED,
} from './resource';

/** A payout: the fields of the wire under their names there (docs/api.md#payouts), and our own. */
export interface PayoutDocument extends ResourceDocument<PayoutStatus, PayoutAttention> {
  /** Minor units. */
  amount: number;
  /** Minor units, drawn beside the amount. */
  fee: number;
  recipient_id: string;
  balance_account: string;
  reference: string | null;
  /** The JSON text as the merchant wrote it. */
  metadata: string;
  returned: Return | null;
  /** Minor units that came back, where an operator booked less than was sent. */
  returned_amount?: number | null;
  /** Time of the capture; null while the money is only reserved. */
  sent_at: string | null;
  completed_at: string | null;
  /** Counted against the limit of its day. */
  limited?: true;
  /** ISO 8601; operators are told of a payout that is later. */
  due_at: string;
}

export interface PayoutFilter extends ListFilter {
  status?: string | undefined;
  method?: string | undefined;
  reference?: string | undefined;
}

export type PayoutStore = ReturnType<typeof createPayoutStore>;

export function createPayoutStore(db: Db) {
  const payouts: Collection<PayoutDocument> = db.collection<PayoutDocument>('payouts');
  return {
    ...resourceStore<PayoutDocument, PayoutFilter>(payouts, PAYOUT_IN_FLIGHT),
    /** Newest payout to a recipient. */
    lastTo: (recipient_id: string) =>
      payouts.findOne({ recipient_id }, { sort: { created_at: -1 } }),
    /** Whether a payout to a recipient is in flight. */
    isUnderWay: async (recipient_id: string): Promise<boolean> => {
      const status = { $in: [...PAYOUT_IN_FLIGHT] };
      return (await payouts.findOne({ recipient_id, status })) !== null;
    },
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        payouts,
        [
          ...listIndexes('status', 'method', 'reference'),
          inFlightIndex(PAYOUT_IN_FLIGHT),
          NEEDS_ATTENTION,
          UPDATED,
          STUCK_INDEX,
          { key: { recipient_id: 1, created_at: -1 }, name: 'recipient' },
        ],
        missing,
      ),
  };
}
