import type { ClientSession, Collection, Document, Filter } from 'mongodb';
import type { Receipt } from '../domain/payment/receipt';
import type { PaymentDocument } from './payment-document';

/** @see docs/ledger.md#money-that-goes-wrong */
export function paymentReceipts(payments: Collection<PaymentDocument>) {
  return {
    /** @returns false when it is recorded already */
    addReceipt: (id: string, receipt: Receipt, session: ClientSession) =>
      updateOnce(
        payments,
        { _id: id, 'receipts.id': { $ne: receipt.id } },
        { $push: { receipts: receipt } },
        session,
      ),
    /** Lists payments whose late funds the bank accepted to send back. @param before ms */
    listUnconfirmedReversals: (before: number, limit: number) =>
      payments
        .find({
          attention: 'late_settlement_reversed',
          attention_since: { $lte: before },
          receipts: { $elemMatch: { reason: 'late', state: 'suspense' } },
        })
        .limit(limit)
        .toArray(),
    /** @returns false when the receipt is in another state */
    changeReceipt: (
      id: string,
      { id: receipt, state }: Pick<Receipt, 'id' | 'state'>,
      change: Partial<Receipt>,
      session: ClientSession,
    ) =>
      updateOnce(
        payments,
        { _id: id, receipts: { $elemMatch: { id: receipt, state } } },
        {
          $set: Object.fromEntries(
            Object.entries(change).map(([field, value]) => [`receipts.$.${field}`, value]),
          ),
        },
        session,
      ),
  };
}

/** @returns false when no payment is in the state that the filter expects */
export async function updateOnce(
  payments: Collection<PaymentDocument>,
  filter: Filter<PaymentDocument>,
  update: Document | Document[],
  session: ClientSession,
): Promise<boolean> {
  return (await payments.updateOne(filter, update, { session })).matchedCount === 1;
}
