import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { REFUND_IN_FLIGHT, type RefundAttention, type RefundStatus } from '../domain/refund/refund';
import { OWNER, resourceIndexes } from './list';
import { type ResourceDocument, resourceStore } from './resource';

/** @see docs/api.md#refunds */
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
  /** Minor units that the bank sent after the refund had failed, and the merchant bears. */
  late_amount?: number;
}

/** Serves the verification of the ledger, which reads all owners. */
export const PAYMENT = { key: { payment_id: 1 }, name: 'payment' } as const;

export function createRefundStore(db: Db) {
  const refunds = db.collection<RefundDocument>('refunds');
  return {
    ...resourceStore<RefundDocument, 'payment_id' | 'status' | 'method'>(refunds, REFUND_IN_FLIGHT),
    /** Notes what the bank sent after the refund had failed, and the merchant bears. */
    noteLate: (_id: string, amount: number, session: ClientSession) =>
      refunds.updateOne({ _id }, { $inc: { late_amount: amount } }, { session }),
    eraseReasons: (payment_id: string, session: ClientSession) =>
      refunds.updateMany({ payment_id }, { $set: { reason: null } }, { session }),
    ensureIndexes: indexBuilder(refunds, [
      ...resourceIndexes(REFUND_IN_FLIGHT, 'status', 'method'),
      { key: { ...OWNER, payment_id: 1, position: -1 }, name: 'payment_position' },
      PAYMENT,
    ]),
  };
}
