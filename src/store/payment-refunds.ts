import type { ClientSession, Collection } from 'mongodb';
import type { PaymentDocument } from './payment-document';

/** The amount, or less if less settled. */
const REFUNDABLE = { $min: ['$amount', { $ifNull: ['$settled_amount', '$amount'] }] };
const TAKEN = { $add: ['$refunded', { $ifNull: ['$refunded_over', 0] }] };
const DISPUTED = { $subtract: [{ $sum: '$disputes.amount' }, { $sum: '$disputes.won' }] };
const UNDISPUTED = { $subtract: [REFUNDABLE, DISPUTED] };
/** Minor units. */
export const REMAINING = { $subtract: [UNDISPUTED, '$refunded'] };

export function paymentRefunds(payments: Collection<PaymentDocument>) {
  /** Bounds `refunded` by what can be refunded; the rest waits in `refunded_over`. */
  const changeTaken = (_id: string, change: number, session: ClientSession) => {
    const taken = { $add: [TAKEN, change] };
    const over = { $max: [0, { $subtract: [taken, REFUNDABLE] }] };
    const fields = { refunded: { $min: [taken, REFUNDABLE] }, refunded_over: over };
    return payments.updateOne({ _id }, [{ $set: fields }], { session });
  };
  return {
    /**
     * Reserves in one conditional write, so that refunds never exceed the payment. An open dispute
     * leaves none.
     * @see docs/api.md#refunds
     * @param amount minor units; null: all that remains
     * @returns the payment as it was before; null when too little remains
     */
    reserveRefund: (id: string, amount: number | null, session: ClientSession) =>
      payments.findOneAndUpdate(
        {
          _id: id,
          status: 'settled',
          disputed_at: null,
          'disputes.state': { $ne: 'opened' },
          $expr: { $lte: [amount ?? 1, REMAINING] },
        },
        [{ $set: { refunded: amount === null ? UNDISPUTED : { $add: ['$refunded', amount] } } }],
        { session, returnDocument: 'before' },
      ),
    /** Call it in the transaction of the refund's transition, so that it happens once. */
    releaseRefund: (
      { payment_id, amount }: { payment_id: string; amount: number },
      session: ClientSession,
    ) => changeTaken(payment_id, -amount, session),
    /** Reserves the amount of a failed refund again, which the bank has sent. */
    takeLateRefund: (
      { payment_id, amount }: { payment_id: string; amount: number },
      session: ClientSession,
    ) => changeTaken(payment_id, amount, session),
  };
}
