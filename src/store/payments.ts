import type { ClientSession, Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { EncryptedCustomer } from '../domain/creation';
import {
  PAYMENT_IN_FLIGHT,
  type PaymentAttention,
  type PaymentStatus,
} from '../domain/payment/payment';
import type { AuditEntry } from './attention';
import { paymentMetrics, SETTLED_DAY } from './payment-metrics';
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
import { refuseVersion1 } from './version';

/**
 * A payment: the fields of the wire under their names there (docs/api.md#create-a-payment), and our
 * own.
 */
export interface PaymentDocument extends ResourceDocument<PaymentStatus, PaymentAttention> {
  /** Minor units. */
  amount: number;
  country: string | null;
  reference: string | null;
  customer: EncryptedCustomer;
  /** The JSON text as the merchant wrote it. */
  metadata: string;
  /** Minor units: the sum of its refunds that are processing or settled. */
  refunded: number;
  authorized_at: string | null;
  settled_at: string | null;
  cancelled_at: string | null;
  /** Minor units that came, where an operator booked other than was asked. */
  settled_amount?: number | null;
  /** Money that came after the payment had ended. @see docs/ledger.md#money-that-goes-wrong */
  late?: LateFunds | null;
  /** When the bank took settled money back, or said so: it can't be refunded any more. */
  disputed_at?: string | null;
  /** Booking of what the bank took back; absent before. */
  clawed_back?: Chargeback | null;
  /** URL to which the bank sends the customer. */
  return_url?: string;
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

/** Money that came after a payment had ended, in suspense until the bank has sent it back. */
export interface LateFunds {
  /** Minor units. */
  amount: number;
  received_at: string;
  reversed_at: string | null;
}

/** Claw-back as it was booked, in minor units: what the balance held, and what the merchant owes. */
export interface Chargeback {
  held: number;
  owed: number;
  at: string;
}

export interface PaymentFilter extends ListFilter {
  status?: string | undefined;
  method?: string | undefined;
  reference?: string | undefined;
}

/** Never more than was asked for, nor than came. */
const REFUNDABLE = { $min: ['$amount', { $ifNull: ['$settled_amount', '$amount'] }] };
const REMAINING = { $subtract: [REFUNDABLE, '$refunded'] };

export function createPaymentStore(db: Db) {
  const payments: Collection<PaymentDocument> = db.collection<PaymentDocument>('payments');
  return {
    ...resourceStore<PaymentDocument, PaymentFilter>(payments, PAYMENT_IN_FLIGHT),
    ...paymentMetrics(payments),
    ensureIndexes: async (missing?: MissingIndexes) => {
      await refuseVersion1(payments);
      await makeIndexes(
        payments,
        [
          ...listIndexes('status', 'method', 'reference'),
          inFlightIndex(PAYMENT_IN_FLIGHT),
          // A pair that is rare among many of each would be looked for in all of them.
          { key: { ...OWNER, method: 1, status: 1, position: -1 }, name: 'method_status_position' },
          { key: { token_hash: 1 }, name: 'token', unique: true },
          SETTLED_DAY,
          NEEDS_ATTENTION,
          UPDATED,
          STUCK_INDEX,
        ],
        missing,
      );
    },
    /** Places of payments in the order in which they were made, after one and before another. */
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
    /** Erases names and e-mail addresses for good; a repeat changes nothing. */
    redactPayers: (ids: string[]) =>
      payments.updateMany({ _id: { $in: ids } }, { $set: { 'customer.sealed': null } }),
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
     * never exceeds the payment, and a disputed one has none. @see docs/api.md#refunds
     * @param amount minor units; null: all that remains
     * @returns the payment as it was before; null when too little remains
     */
    reserveRefund: (id: string, amount: number | null, session: ClientSession) =>
      payments.findOneAndUpdate(
        {
          _id: id,
          status: 'settled',
          disputed_at: null,
          $expr: { $lte: [amount ?? 1, REMAINING] },
        },
        [{ $set: { refunded: amount === null ? REFUNDABLE : { $add: ['$refunded', amount] } } }],
        { session, returnDocument: 'before' },
      ),
    /** Gives the amount of a failed refund back, in the transaction of its move, so once. */
    releaseRefund: (
      { payment_id, amount }: { payment_id: string; amount: number },
      session: ClientSession,
    ) => payments.updateOne({ _id: payment_id }, { $inc: { refunded: -amount } }, { session }),
    /** Takes note once that the bank wants settled money back. */
    dispute: (id: string, disputed_at: string) =>
      payments.updateOne({ _id: id, disputed_at: null }, { $set: { disputed_at } }),
    /** Keeps late money once; false when there is some. */
    receiveLate: async (id: string, late: LateFunds, session: ClientSession): Promise<boolean> => {
      const filter = { _id: id, late: null };
      const { matchedCount } = await payments.updateOne(filter, { $set: { late } }, { session });
      return matchedCount === 1;
    },
    /** Notes once that late money was sent back. */
    reverseLate: async (id: string, at: string, session: ClientSession): Promise<boolean> => {
      const { matchedCount } = await payments.updateOne(
        { _id: id, late: { $ne: null }, 'late.reversed_at': null },
        { $set: { 'late.reversed_at': at } },
        { session },
      );
      return matchedCount === 1;
    },
    /** Writes the claw-back once, with the operator's act; false when there is one. */
    recordChargeback: async (
      id: string,
      clawed_back: Chargeback,
      act: AuditEntry,
      session: ClientSession,
    ): Promise<boolean> => {
      const { matchedCount } = await payments.updateOne(
        { _id: id, status: 'settled', clawed_back: null },
        [
          {
            $set: {
              clawed_back: { $literal: clawed_back },
              attention: null,
              attention_at: { $max: ['$attention_at', Date.parse(clawed_back.at)] },
              disputed_at: { $ifNull: ['$disputed_at', clawed_back.at] },
              audit: { $concatArrays: ['$audit', [{ $literal: act }]] },
            },
          },
        ],
        { session },
      );
      return matchedCount === 1;
    },
  };
}
