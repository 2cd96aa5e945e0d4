import type { ClientSession, Collection, Db } from 'mongodb';
import type { Failure } from '../domain/lifecycle';
import type { PaymentAttention, PaymentStatus } from '../domain/payment';
import { type AttentionAct, type AuditEntry, attentionChange } from './attention';

/** The payment as it stands: wire fields in wire names (spec §2.1), and what only we see. */
export interface PaymentDocument {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** Moves made so far; every write of the lifecycle is conditional on it. */
  version: number;
  /** Place in lists. @see src/domain/cursor.ts */
  position: string;
  status: PaymentStatus;
  /** Minor units. */
  amount: number;
  currency: string;
  method: string;
  country: string | null;
  reference: string | null;
  customer: Customer;
  /** The JSON text as the merchant wrote it. */
  metadata: string;
  failure: Failure | null;
  /** Minor units: the sum of its refunds that are processing or settled. */
  refunded: number;
  authorized_at: string | null;
  settled_at: string | null;
  cancelled_at: string | null;
  created_at: string;
  updated_at: string;
  success_url: string;
  error_url: string;
  expires_at: string;
  connector: string;
  bank_reference: string | null;
  session_url: string | null;
  /** SHA-256 of the page's token; the token itself is derived, never stored. */
  token_hash: string;
  /** Who opened the page: SHA-256 of that browser's cookie; null until then. */
  browser_hash: string | null;
  opened_at: string | null;
  attention: PaymentAttention | null;
  request_id: string;
  audit: AuditEntry[];
}

export interface Customer {
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  reference: string | null;
}

export interface PaymentFilter {
  account_id: string;
  livemode: boolean;
  status?: string;
  method?: string;
  reference?: string;
  /** Rows strictly before this position. */
  before?: string;
  limit: number;
}

/** What is processing or settled as refunds. */
const REFUNDED = { $ifNull: ['$refunded', 0] };
const REMAINING = { $subtract: ['$amount', REFUNDED] };

export type PaymentStore = ReturnType<typeof createPaymentStore>;

export function createPaymentStore(db: Db) {
  const payments: Collection<PaymentDocument> = db.collection<PaymentDocument>('payments');
  const owned = { account_id: 1, livemode: 1 } as const;
  return {
    ensureIndexes: () =>
      payments.createIndexes([
        { key: { ...owned, position: -1 }, name: 'position', unique: true },
        { key: { ...owned, status: 1, position: -1 }, name: 'status_position' },
        { key: { ...owned, method: 1, position: -1 }, name: 'method_position' },
        { key: { ...owned, reference: 1, position: -1 }, name: 'reference_position' },
        { key: { token_hash: 1 }, name: 'token', unique: true },
      ]),
    insert: (payment: PaymentDocument, session: ClientSession) =>
      payments.insertOne(payment, { session }),
    /** By id alone: for the service's own steps. */
    get: (id: string, session?: ClientSession) => payments.findOne({ _id: id }, { session }),
    /** By id within one account and environment: what a merchant may see. */
    find: (id: string, account_id: string, livemode: boolean) =>
      payments.findOne({ _id: id, account_id, livemode }),
    list: (filter: PaymentFilter) => listPayments(payments, filter),
    byToken: (token_hash: string) => payments.findOne({ token_hash }),
    /** Binds the page to the first browser that opens it; null when another one has, or too late. */
    openPage: (token_hash: string, browser_hash: string, now: string) =>
      payments.findOneAndUpdate(
        { token_hash, browser_hash: { $in: [null, browser_hash] }, expires_at: { $gt: now } },
        [{ $set: { browser_hash, opened_at: { $ifNull: ['$opened_at', now] } } }],
        { returnDocument: 'after' },
      ),
    /** One conditional write; null when the payment is no longer at `version`. */
    update: async (
      id: string,
      version: number,
      change: Partial<PaymentDocument>,
      audit: AuditEntry[],
      session: ClientSession,
    ): Promise<PaymentDocument | null> =>
      await payments.findOneAndUpdate(
        { _id: id, version },
        { $set: change, ...(audit.length > 0 ? { $push: { audit: { $each: audit } } } : {}) },
        { session, returnDocument: 'after' },
      ),
    /**
     * Takes the amount of a refund from what remains, in one conditional write; null when that is
     * too little. The sum of refunds never exceeds the payment. @see spec §4.3
     * @param amount minor units; null: all that remains
     * @returns the payment as it was before
     */
    reserveRefund: (id: string, amount: number | null, session: ClientSession) =>
      payments.findOneAndUpdate(
        { _id: id, status: 'settled', $expr: { $lte: [amount ?? 1, REMAINING] } },
        [{ $set: { refunded: amount === null ? '$amount' : { $add: [REFUNDED, amount] } } }],
        { session, returnDocument: 'before' },
      ),
    /** A failed refund gives its amount back. In the transaction of its move, so once. */
    releaseRefund: (
      { payment_id, amount }: { payment_id: string; amount: number },
      session: ClientSession,
    ) => payments.updateOne({ _id: payment_id }, { $inc: { refunded: -amount } }, { session }),
    /** Marks or unmarks it for operators, outside the count of versions: the state stays. */
    setAttention: (
      id: string,
      version: number,
      attention: PaymentAttention | null,
      act: AttentionAct | null,
    ) => {
      const { unlessDone, change } = attentionChange(attention, act);
      return payments.updateOne({ _id: id, version, ...unlessDone }, change);
    },
  };
}

function listPayments(
  payments: Collection<PaymentDocument>,
  filter: PaymentFilter,
): Promise<PaymentDocument[]> {
  const { before, limit, ...equal } = filter;
  const wanted = Object.fromEntries(Object.entries(equal).filter(([, v]) => v !== undefined));
  return payments
    .find({ ...wanted, ...(before === undefined ? {} : { position: { $lt: before } }) })
    .sort({ position: -1 })
    .limit(limit)
    .toArray();
}
