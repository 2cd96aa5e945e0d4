import type { ClientSession, Collection, Db, Document, Filter } from 'mongodb';
import { indexBuilder, type NamedIndex } from '../base/mongo-indexes';
import type { EncryptedCustomer } from '../domain/creation';
import {
  PAYMENT_IN_FLIGHT,
  PAYMENT_STATUSES,
  type PaymentAttention,
  type PaymentStatus,
} from '../domain/payment/payment';
import type { TransferInstructions } from '../domain/payment/transfer-instructions';
import { LIST_MS_MAX, OWNER, resourceIndexes, toRange } from './list';
import { type AuditEntry, type ResourceDocument, resourceStore } from './resource';

export function createPaymentStore(db: Db) {
  const payments = db.collection<PaymentDocument>('payments');
  /**
   * Bounds `refunded` by what can be refunded; the rest waits in `refunded_over`. A bank may return
   * more than was refunded: no more than the payment can be refunded then.
   */
  const changeTaken = (_id: string, change: number, session: ClientSession) => {
    const taken = { $max: [0, { $add: [TAKEN, change] }] };
    const over = { $max: [0, { $subtract: [taken, REFUNDABLE] }] };
    const fields = { refunded: { $min: [taken, REFUNDABLE] }, refunded_over: over };
    return payments.updateOne({ _id }, [{ $set: fields }], { session });
  };
  return {
    ...resourceStore<PaymentDocument, 'status' | 'method' | 'reference'>(
      payments,
      PAYMENT_IN_FLIGHT,
    ),
    ensureIndexes: indexBuilder(payments, [
      ...resourceIndexes(PAYMENT_IN_FLIGHT, 'status', 'method', 'reference'),
      // Serves a rare pair of frequent values.
      { key: { ...OWNER, method: 1, status: 1, position: -1 }, name: 'method_status_position' },
      { key: { token_hash: 1 }, name: 'token', unique: true },
      SETTLED_DAY,
    ]),
    /** Notes a callback that changed no status, so that no later run reads it again. */
    noteApplied: (id: string, callback_id: string, session: ClientSession) =>
      payments.updateOne(
        { _id: id },
        { $addToSet: { applied_callbacks: callback_id } },
        { session },
      ),
    /** Lists payments whose late funds the bank accepted to send back. @param before ms */
    listSentBack: async function* (before: number) {
      const filter = { attention: 'late_settlement_reversed' } as const;
      yield* payments.find({ ...filter, attention_since: { $lte: before } });
    },
    dispute: (id: string, disputed_at: string, session: ClientSession) =>
      payments.updateOne(
        { _id: id, disputed_at: null, dispute_ended_at: { $not: { $gte: disputed_at } } },
        { $set: { disputed_at } },
        { session },
      ),
    /**
     * Counts what a dispute took or gave back, and whether it opens or closes one.
     * @param amount minor units; below 0: given back
     */
    countDisputed: (
      _id: string,
      { amount = 0, open = 0, at }: { amount?: number; open?: number; at: string },
      session: ClientSession,
    ): Promise<boolean> =>
      updateOnce(
        payments,
        { _id, status: 'settled' },
        { $inc: { disputed: amount, disputes_open: open }, $max: { updated_at: at } },
        session,
      ),
    /** Ends the report of a chargeback whose entry is reversed. */
    endReport: (_id: string, at: string, session: ClientSession) =>
      payments.updateOne(
        { _id },
        { $set: { disputed_at: null, dispute_ended_at: at }, $max: { updated_at: at } },
        { session },
      ),
    /**
     * Ends the report of a chargeback by an operator's act, so that the rest of the payment can be
     * refunded. One that left nothing to refund stays disputed.
     */
    endDisputeReport: (
      _id: string,
      { entry, attention }: DisputeAct,
      { at, isWon }: { at: string; isWon: boolean },
      session: ClientSession,
    ) => {
      const ended = { $ifNull: ['$disputed_at', entry.when] };
      const disputed_at = isWon ? null : { $cond: [{ $gt: [REMAINING, 0] }, null, ended] };
      return updateOnce(
        payments,
        { _id },
        [
          {
            $set: {
              attention,
              attention_at: { $max: ['$attention_at', Date.parse(entry.when)] },
              disputed_at,
              dispute_ended_at: isWon ? at : entry.when,
              updated_at: { $max: ['$updated_at', at] },
              audit: { $concatArrays: ['$audit', [{ $literal: entry }]] },
            },
          },
        ],
        session,
      );
    },
    /** Reads oldest first. @param place exclusive positions */
    listPayers: (
      { account_id, livemode }: { account_id: string; livemode: boolean },
      place: { after: string; before?: string },
      limit: number,
    ) =>
      payments
        .find({ account_id, livemode, position: toRange({ $gt: place.after, $lt: place.before }) })
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
          disputes_open: { $not: { $gt: 0 } },
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
    settledByDay: (account_id: string, livemode: boolean, since: string): Promise<SettledDay[]> =>
      payments
        .aggregate<SettledDay>(
          [
            { $match: { account_id, livemode, status: 'settled', settled_at: { $gte: since } } },
            {
              $group: {
                _id: { day: { $substrBytes: ['$settled_at', 0, 10] }, currency: '$currency' },
                payments: { $sum: 1 },
                amount: { $sum: { $ifNull: ['$settled_amount', '$amount'] } },
              },
            },
            {
              $replaceWith: {
                $mergeObjects: ['$_id', { payments: '$payments', amount: '$amount' }],
              },
            },
            { $sort: { day: 1, currency: 1 } },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
        .toArray(),
    countByStatus: (account_id: string, livemode: boolean, since: string) =>
      payments
        .aggregate<{ status: PaymentStatus; payments: number }>(
          [
            {
              $match: {
                account_id,
                livemode,
                status: { $in: [...PAYMENT_STATUSES] },
                position: { $gte: since },
              },
            },
            { $group: { _id: '$status', payments: { $sum: 1 } } },
            { $project: { _id: 0, status: '$_id', payments: 1 } },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
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

interface DisputeAct {
  entry: AuditEntry;
  attention: PaymentAttention | null;
}

/** @see docs/api.md#create-a-payment */
export interface PaymentDocument extends ResourceDocument<PaymentStatus, PaymentAttention> {
  /** Minor units. */
  amount: number;
  country: string | null;
  reference: string | null;
  customer: EncryptedCustomer;
  metadata: string;
  /** Minor units of its processing and settled refunds. */
  refunded: number;
  /** Minor units beyond the amount, from failed refunds that the bank sent. */
  refunded_over?: number;
  authorized_at: string | null;
  settled_at: string | null;
  cancelled_at: string | null;
  /** Minor units, where an operator booked a different amount. */
  settled_amount?: number | null;
  /** `YYYY-MM-DD` from which the merchant can use it, where the bank says so. */
  available_on?: string;
  /** No refunds since then: the bank reported a chargeback, or it took all. */
  disputed_at?: string | null;
  /** Decision of an operator: an earlier report disputes it no more. */
  dispute_ended_at?: string;
  /** Minor units that disputes took, without what came back. */
  disputed?: number;
  /** Number of disputes that are not closed. */
  disputes_open?: number;
  return_url?: string;
  success_url: string;
  error_url: string;
  expires_at: string;
  session_url: string | null;
  /** Replaces a session. */
  instructions?: TransferInstructions;
  /** SHA-256 of the page's token, which is derived and never stored. */
  token_hash: string;
  browser_hash: string | null;
  opened_at: string | null;
}

/** The amount, or less if less settled. */
const REFUNDABLE = { $min: ['$amount', { $ifNull: ['$settled_amount', '$amount'] }] };
const TAKEN = { $add: ['$refunded', { $ifNull: ['$refunded_over', 0] }] };
const UNDISPUTED = { $subtract: [REFUNDABLE, { $ifNull: ['$disputed', 0] }] };
/** Minor units. */
const REMAINING = { $subtract: [UNDISPUTED, '$refunded'] };

/** @returns false when no payment is in the state that the filter expects */
async function updateOnce(
  payments: Collection<PaymentDocument>,
  filter: Filter<PaymentDocument>,
  update: Document | Document[],
  session: ClientSession,
): Promise<boolean> {
  return (await payments.updateOne(filter, update, { session })).matchedCount === 1;
}

/** Covers the query of the volume per day. */
const SETTLED_DAY: NamedIndex = {
  key: { ...OWNER, status: 1, settled_at: 1, currency: 1, amount: 1, settled_amount: 1 },
  name: 'settled_day',
  partialFilterExpression: { status: 'settled' },
};

export interface SettledDay {
  /** `YYYY-MM-DD` */
  day: string;
  currency: string;
  payments: number;
  /** Minor units. */
  amount: number;
}

export interface OverviewCounts {
  settledDays: SettledDay[];
  today: { status: PaymentStatus; payments: number }[];
  events: number;
  exhausted: number;
  waiting: number;
}

/** Counts are cached up to this age, since they read many rows. */
export const OVERVIEW_MS = 10_000;
