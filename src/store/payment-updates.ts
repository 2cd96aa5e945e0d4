import type { ClientSession, Collection, Document, Filter } from 'mongodb';
import type { PaymentDocument } from './payment-document';

/** @returns false when no payment is in the state that the filter expects */
export async function updateOnce(
  payments: Collection<PaymentDocument>,
  filter: Filter<PaymentDocument>,
  update: Document | Document[],
  session: ClientSession,
): Promise<boolean> {
  return (await payments.updateOne(filter, update, { session })).matchedCount === 1;
}
