import type { ClientSession, Collection, Db } from 'mongodb';
import type { PaymentAttention, PaymentStatus } from '../domain/payment';
import { type ListFilter, listIndexes, type ResourceDocument, resourceStore } from './resource';

/**
 * A payment: the fields of the wire under their names there (docs/api.md#create-a-payment), and our
 * own.
 */
export interface PaymentDocument extends ResourceDocument<PaymentStatus, PaymentAttention> {
  country: string | null;
  reference: string | null;
  customer: Customer;
  /** The JSON text as the merchant wrote it. */
  metadata: string;
  /** Minor units: the sum of its refunds that are processing or settled. */
  refunded: number;
  authorized_at: string | null;
  settled_at: string | null;
  cancelled_at: string | null;
  success_url: string;
  error_url: string;
  expires_at: string;
  session_url: string | null;
  /** SHA-256 of the page's token; the token itself is derived, never stored. */
  token_hash: string;
  /** SHA-256 of the cookie of the browser that opened the page; null until then. */
  browser_hash: string | null;
  opened_at: string | null;
}

interface Customer {
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  reference: string | null;
}

export interface PaymentFilter extends ListFilter {
  status?: string | undefined;
  method?: string | undefined;
  reference?: string | undefined;
}

/** Refunds that are processing or settled; an older document does not count them. */
const REFUNDED = { $ifNull: ['$refunded', 0] };
const REMAINING = { $subtract: ['$amount', REFUNDED] };

export type PaymentStore = ReturnType<typeof createPaymentStore>;

export function createPaymentStore(db: Db) {
  const payments: Collection<PaymentDocument> = db.collection<PaymentDocument>('payments');
  return {
    ...resourceStore<PaymentDocument, PaymentFilter>(payments),
    ensureIndexes: () =>
      payments.createIndexes([
        ...listIndexes('status', 'method', 'reference'),
        { key: { token_hash: 1 }, name: 'token', unique: true },
      ]),
    byToken: (token_hash: string) => payments.findOne({ token_hash }),
    /** Binds the page to the first browser that opens it; null for another one, or after expiry. */
    openPage: (token_hash: string, browser_hash: string, now: string) =>
      payments.findOneAndUpdate(
        { token_hash, browser_hash: { $in: [null, browser_hash] }, expires_at: { $gt: now } },
        [{ $set: { browser_hash, opened_at: { $ifNull: ['$opened_at', now] } } }],
        { returnDocument: 'after' },
      ),
    /**
     * Takes the amount of a refund from what remains, in one conditional write. The sum of refunds
     * never exceeds the payment. @see docs/api.md#refunds
     * @param amount minor units; null: all that remains
     * @returns the payment as it was before; null when too little remains
     */
    reserveRefund: (id: string, amount: number | null, session: ClientSession) =>
      payments.findOneAndUpdate(
        { _id: id, status: 'settled', $expr: { $lte: [amount ?? 1, REMAINING] } },
        [{ $set: { refunded: amount === null ? '$amount' : { $add: [REFUNDED, amount] } } }],
        { session, returnDocument: 'before' },
      ),
    /** Gives the amount of a failed refund back, in the transaction of its move, so once. */
    releaseRefund: (
      { payment_id, amount }: { payment_id: string; amount: number },
      session: ClientSession,
    ) => payments.updateOne({ _id: payment_id }, { $inc: { refunded: -amount } }, { session }),
  };
}
