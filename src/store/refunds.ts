import type { Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import { REFUND_IN_FLIGHT, type RefundAttention, type RefundStatus } from '../domain/refund/refund';
import {
  inFlightIndex,
  type ListFilter,
  listIndexes,
  NEEDS_ATTENTION,
  OWNER,
  type ResourceDocument,
  resourceStore,
  STUCK_INDEX,
  UPDATED,
} from './resource';

/** A refund: the fields of the wire under their names there (docs/api.md#refunds), and our own. */
export interface RefundDocument extends ResourceDocument<RefundStatus, RefundAttention> {
  /** Minor units. */
  amount: number;
  payment_id: string;
  reason: string | null;
  settled_at: string | null;
  /** Minor units that the bank sent, where an operator booked less than was asked. */
  settled_amount?: number | null;
  /** The bank's name for the payment, so that it finds the money to send back. */
  payment_bank_reference: string | null;
  /** ISO 8601; operators are told of a refund that is later. */
  due_at: string;
}

export interface RefundFilter extends ListFilter {
  payment_id?: string | undefined;
  status?: string | undefined;
  method?: string | undefined;
}

/** Index of the refunds of a payment, whoever owns them, for the verification of the ledger. */
export const PAYMENT = { key: { payment_id: 1 }, name: 'payment' } as const;

export function createRefundStore(db: Db) {
  const refunds: Collection<RefundDocument> = db.collection<RefundDocument>('refunds');
  return {
    ...resourceStore<RefundDocument, RefundFilter>(refunds, REFUND_IN_FLIGHT),
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        refunds,
        [
          ...listIndexes('status', 'method'),
          inFlightIndex(REFUND_IN_FLIGHT),
          { key: { ...OWNER, payment_id: 1, position: -1 }, name: 'payment_position' },
          PAYMENT,
          NEEDS_ATTENTION,
          UPDATED,
          STUCK_INDEX,
        ],
        missing,
      ),
  };
}
