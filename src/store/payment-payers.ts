import type { ClientSession, Collection } from 'mongodb';
import type { PaymentDocument } from './payment-document';
import { updateOnce } from './payment-updates';

export function paymentPayers(payments: Collection<PaymentDocument>) {
  return {
    /** Reads oldest first. */
    listPayers: (
      { account_id, livemode }: { account_id: string; livemode: boolean },
      after: string,
      limit: number,
    ) =>
      payments
        .find({ account_id, livemode, position: { $gt: after } })
        .sort({ position: 1 })
        .limit(limit)
        .project<Pick<PaymentDocument, '_id' | 'customer' | 'position'>>({
          customer: 1,
          position: 1,
        })
        .toArray(),
    reencryptPayer: (_id: string, before: string, ciphertext: string) =>
      payments.updateOne(
        { _id, 'customer.ciphertext': before },
        { $set: { 'customer.ciphertext': ciphertext } },
      ),
    redactPayers: (ids: string[]) =>
      payments.updateMany(
        { _id: { $in: ids } },
        { $set: { 'customer.ciphertext': null, browser_hash: null } },
      ),
    /** Erases also the merchant's name for the payer, unless the payment has changed. */
    erasePayer: (
      _id: string,
      { status, customer }: Pick<PaymentDocument, 'status' | 'customer'>,
      session: ClientSession,
    ) =>
      updateOnce(
        payments,
        {
          _id,
          status,
          'customer.ciphertext': customer.ciphertext,
          'customer.reference': customer.reference,
        },
        { $set: { customer: { reference: null, ciphertext: null }, browser_hash: null } },
        session,
      ),
  };
}
