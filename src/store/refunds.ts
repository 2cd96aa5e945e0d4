import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { REFUND_IN_FLIGHT, type RefundAttention, type RefundStatus } from '../domain/refund/refund';
import { OWNER, type ResourceDocument, resourceIndexes, resourceStore } from './resource';

/** Refund: the fields of docs/api.md#refunds under their wire names, and ours. */
export interface RefundDocument extends ResourceDocument<RefundStatus, RefundAttention> {
  /** Minor units. */
  amount: number;
  payment_id: string;
  reason: string | null;
  settled_at: string | null;
  /** Minor units, where an operator booked a smaller amount. */
  settled_amount?: number | null;
  payment_bank_reference: string | null;
  due_at: string;
}

/** Index for the verification of the ledger, which reads all owners. */
export const PAYMENT = { key: { payment_id: 1 }, name: 'payment' } as const;

export function createRefundStore(db: Db) {
  const refunds = db.collection<RefundDocument>('refunds');
  return {
    ...resourceStore<RefundDocument, 'payment_id' | 'status' | 'method'>(refunds, REFUND_IN_FLIGHT),
    ensureIndexes: indexBuilder(refunds, [
      ...resourceIndexes(REFUND_IN_FLIGHT, 'status', 'method'),
      { key: { ...OWNER, payment_id: 1, position: -1 }, name: 'payment_position' },
      PAYMENT,
    ]),
  };
}
