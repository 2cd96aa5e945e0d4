import type { ClientSession, Collection, Db, Document, Filter } from 'mongodb';
import { type MissingIndexes, makeIndexes, readIndexNames } from '../base/mongo-indexes';
import type { EncryptedCustomer } from '../domain/creation';
import { ServiceError } from '../domain/errors';
import {
  PAYMENT_IN_FLIGHT,
  type PaymentAttention,
  type PaymentStatus,
} from '../domain/payment/payment';
import type { Receipt } from '../domain/payment/receipt';
import type { AuditEntry } from './attention';
import { paymentMetrics, SETTLED_DAY } from './payment-metrics';
import { OWNER, type ResourceDocument, resourceIndexes, resourceStore } from './resource';

/** Payment: the fields of docs/api.md#create-a-payment under their wire names, and ours. */
export interface PaymentDocument extends ResourceDocument<PaymentStatus, PaymentAttention> {
  /** Minor units. */
  amount: number;
  country: string | null;
  reference: string | null;
  customer: EncryptedCustomer;
  metadata: string;
  /** Minor units: the sum of its processing and settled refunds. */
  refunded: number;
  /** Minor units that customers have beyond the amount, by failed refunds that the bank sent. */
  refunded_over?: number;
  authorized_at: string | null;
  settled_at: string | null;
  cancelled_at: string | null;
  /** Minor units, where an operator booked a different amount. */
  settled_amount?: number | null;
  /** Money in question, the oldest first. @see docs/ledger.md#money-that-goes-wrong */
  receipts?: Receipt[];
  /** Time of the dispute: from then on it cannot be refunded. */
  disputed_at?: string | null;
  clawed_back?: Chargeback | null;
  return_url?: string;
  success_url: string;
  error_url: string;
  expires_at: string;
  session_url: string | null;
  /** SHA-256 of the page's token, which is derived and never stored. */
  token_hash: string;
  browser_hash: string | null;
  opened_at: string | null;
}

/**
 * Booked chargeback, in minor units: the part that the balance held, and the debt of the merchant.
 */
export interface Chargeback {
  held: number;
  owed: number;
  at: string;
}

/** Never more than the amount, nor than what settled. */
const REFUNDABLE = { $min: ['$amount', { $ifNull: ['$settled_amount', '$amount'] }] };
/** All that refunds take, also beyond the amount. */
const TAKEN = { $add: ['$refunded', { $ifNull: ['$refunded_over', 0] }] };
const REMAINING = { $subtract: [REFUNDABLE, '$refunded'] };

export function createPaymentStore(db: Db) {
  const payments = db.collection<PaymentDocument>('payments');
  const updateOnce = async (
    filter: Filter<PaymentDocument>,
    update: Document | Document[],
    session: ClientSession,
  ): Promise<boolean> => (await payments.updateOne(filter, update, { session })).matchedCount === 1;
  /** Bounds `refunded` by what can be refunded; the rest waits in `refunded_over`. */
  const changeTaken = (_id: string, change: number, session: ClientSession) => {
    const taken = { $add: [TAKEN, change] };
    const over = { $max: [0, { $subtract: [taken, REFUNDABLE] }] };
    const fields = { refunded: { $min: [taken, REFUNDABLE] }, refunded_over: over };
    return payments.updateOne({ _id }, [{ $set: fields }], { session });
  };
  return {
    ...resourceStore<PaymentDocument, 'status' | 'method' | 'reference'>(
      payments,
      PAYMENT_IN_FLIGHT,
    ),
    ...paymentMetrics(payments),
    ensureIndexes: async (missing?: MissingIndexes) => {
      await refuseVersion1(payments);
      await makeIndexes(
        payments,
        [
          ...resourceIndexes(PAYMENT_IN_FLIGHT, 'status', 'method', 'reference'),
          // Serves a rare pair of frequent values.
          { key: { ...OWNER, method: 1, status: 1, position: -1 }, name: 'method_status_position' },
          { key: { token_hash: 1 }, name: 'token', unique: true },
          SETTLED_DAY,
        ],
        missing,
      );
    },
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
     * Reserves the amount of a refund in one conditional write, so that refunds never exceed the
     * payment. A disputed payment has none. @see docs/api.md#refunds
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
    /** Releases the amount of a failed refund, in the transaction of its transition, so once. */
    releaseRefund: (
      { payment_id, amount }: { payment_id: string; amount: number },
      session: ClientSession,
    ) => changeTaken(payment_id, -amount, session),
    /** Takes the amount of a failed refund again, which the bank has sent. */
    takeLateRefund: (
      { payment_id, amount }: { payment_id: string; amount: number },
      session: ClientSession,
    ) => changeTaken(payment_id, amount, session),
    dispute: (id: string, disputed_at: string) =>
      payments.updateOne({ _id: id, disputed_at: null }, { $set: { disputed_at } }),
    /** Records money in question once; false when it is recorded already. */
    addReceipt: (id: string, receipt: Receipt, session: ClientSession) =>
      updateOnce(
        { _id: id, 'receipts.id': { $ne: receipt.id } },
        { $push: { receipts: receipt } },
        session,
      ),
    /** Changes money in question once; false when it is in another state. */
    changeReceipt: (
      id: string,
      { id: receipt, state }: Pick<Receipt, 'id' | 'state'>,
      change: Partial<Receipt>,
      session: ClientSession,
    ) =>
      updateOnce(
        { _id: id, receipts: { $elemMatch: { id: receipt, state } } },
        {
          $set: Object.fromEntries(
            Object.entries(change).map(([field, value]) => [`receipts.$.${field}`, value]),
          ),
        },
        session,
      ),
    recordChargeback: (
      id: string,
      { attention, ...clawed_back }: Chargeback & { attention: PaymentAttention | null },
      act: AuditEntry,
      session: ClientSession,
    ) =>
      updateOnce(
        { _id: id, status: 'settled', clawed_back: null },
        [
          {
            $set: {
              clawed_back: { $literal: clawed_back },
              attention,
              attention_at: { $max: ['$attention_at', Date.parse(clawed_back.at)] },
              disputed_at: { $ifNull: ['$disputed_at', clawed_back.at] },
              audit: { $concatArrays: ['$audit', [{ $literal: act }]] },
            },
          },
        ],
        session,
      ),
  };
}

const VERSION_1_INDEX = 'clear_payer';

/** @throws ServiceError `version_1_data` when version 1 filled the database */
async function refuseVersion1(payments: Collection<PaymentDocument>): Promise<void> {
  if (!(await readIndexNames(payments)).has(VERSION_1_INDEX)) return;
  throw new ServiceError(
    'version_1_data',
    `The database ${payments.dbName} holds data of version 1, which version 2 does not read. ` +
      'Set MONGODB_DB to another name: version 2 starts over.',
  );
}
