import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { REFUND_IN_FLIGHT, type RefundAttention, type RefundStatus } from '../domain/refund/refund';
import type { SentAgain } from '../domain/sent-again';
import type { SentHeld } from '../domain/sent-held';
import { type ResourceDocument, resourceStore } from './resource';
import { OWNER, resourceIndexes } from './resource-indexes';
import { sentHeldWrites } from './sent-held';

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
  /** Payment of the bank after the refund had failed. */
  sent_late?: SentLate | null;
  /** Payments beyond the one that was instructed. */
  sent_again?: SentAgain[];
  sent_held?: SentHeld[];
}

/** Minor units: what the balance held, and the debt of the merchant. */
export interface SentLate extends SentAgain {
  held: number;
  owed: number;
}

/** Serves the verification of the ledger, which reads all owners. */
export const PAYMENT = { key: { payment_id: 1 }, name: 'payment' } as const;

export function createRefundStore(db: Db) {
  const refunds = db.collection<RefundDocument>('refunds');
  return {
    ...resourceStore<RefundDocument, 'payment_id' | 'status' | 'method'>(refunds, REFUND_IN_FLIGHT),
    ...sentHeldWrites(refunds),
    /** @returns false when it is recorded already */
    recordSentLate: async (id: string, sent_late: SentLate, session: ClientSession) => {
      const filter = { _id: id, status: 'failed', sent_late: null } as const;
      const { matchedCount } = await refunds.updateOne(
        filter,
        { $set: { sent_late } },
        { session },
      );
      return matchedCount === 1;
    },
    eraseReasons: (payment_id: string, session: ClientSession) =>
      refunds.updateMany({ payment_id }, { $set: { reason: null } }, { session }),
    recordSentAgain: async (id: string, sent: SentAgain, session: ClientSession) => {
      const filter = { _id: id, 'sent_again.id': { $ne: sent.id } };
      const update = { $push: { sent_again: sent } };
      return (await refunds.updateOne(filter, update, { session })).matchedCount === 1;
    },
    ensureIndexes: indexBuilder(refunds, [
      ...resourceIndexes(REFUND_IN_FLIGHT, 'status', 'method'),
      { key: { ...OWNER, payment_id: 1, position: -1 }, name: 'payment_position' },
      PAYMENT,
    ]),
  };
}
