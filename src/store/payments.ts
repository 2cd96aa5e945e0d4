import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { PAYMENT_IN_FLIGHT } from '../domain/payment/payment';
import { paymentMetrics, SETTLED_DAY } from './overview-counts';
import { paymentDisputes } from './payment-disputes';
import type { PaymentDocument } from './payment-document';
import { paymentPayers } from './payment-payers';
import { paymentRefunds } from './payment-refunds';
import { resourceStore } from './resource';
import { OWNER, resourceIndexes } from './resource-indexes';

export type { DisputeAct } from './payment-disputes';
export type { PaymentDocument } from './payment-document';

export function createPaymentStore(db: Db) {
  const payments = db.collection<PaymentDocument>('payments');
  return {
    ...resourceStore<PaymentDocument, 'status' | 'method' | 'reference'>(
      payments,
      PAYMENT_IN_FLIGHT,
    ),
    ...paymentMetrics(payments),
    ...paymentPayers(payments),
    ...paymentRefunds(payments),
    ...paymentDisputes(payments),
    ensureIndexes: indexBuilder(payments, [
      ...resourceIndexes(PAYMENT_IN_FLIGHT, 'status', 'method', 'reference'),
      // Serves a rare pair of frequent values.
      { key: { ...OWNER, method: 1, status: 1, position: -1 }, name: 'method_status_position' },
      { key: { token_hash: 1 }, name: 'token', unique: true },
      SETTLED_DAY,
    ]),
    listPositions: (
      { account_id, livemode }: { account_id: string; livemode: boolean },
      after: string,
      before: string,
      limit: number,
    ) =>
      payments
        .find({ account_id, livemode, position: { $gt: after, $lt: before } })
        .sort({ position: 1 })
        .limit(limit)
        .project<{ _id: string; position: string }>({ position: 1 })
        .toArray(),
    /** Notes a callback that changed no status, so that no later run reads it again. */
    noteApplied: (id: string, callback_id: string, session: ClientSession) =>
      payments.updateOne(
        { _id: id },
        { $addToSet: { applied_callbacks: callback_id } },
        { session },
      ),
    /** Lists payments whose late funds the bank accepted to send back. @param before ms */
    listSentBack: (before: number, limit: number) =>
      payments
        .find({ attention: 'late_settlement_reversed', attention_since: { $lte: before } })
        .limit(limit)
        .toArray(),
    byToken: (token_hash: string) => payments.findOne({ token_hash }),
    /**
     * Binds the page to the first browser that opens it.
     * @returns null for another one, or after expiry
     */
    openPage: (token_hash: string, browser_hash: string, now: string) =>
      payments.findOneAndUpdate(
        { token_hash, browser_hash: { $in: [null, browser_hash] }, expires_at: { $gt: now } },
        [{ $set: { browser_hash, opened_at: { $ifNull: ['$opened_at', now] } } }],
        { returnDocument: 'after' },
      ),
  };
}
