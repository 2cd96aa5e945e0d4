import type { ClientSession, Collection, Db, Document, Filter } from 'mongodb';
import { type MissingIndexes, makeIndexes, readIndexNames } from '../base/mongo-indexes';
import type { EncryptedCustomer } from '../domain/creation';
import { omitUndefined } from '../domain/defined';
import { ServiceError } from '../domain/errors';
import type { Dispute } from '../domain/payment/dispute';
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
  /** Time since which it cannot be refunded: the bank reported a chargeback, or it took all. */
  disputed_at?: string | null;
  /** Time at which an operator decided about it: an earlier report disputes it no more. */
  dispute_ended_at?: string;
  /** Money that the bank took, the oldest first. */
  disputes?: Dispute[];
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

/** Act of an operator on a dispute, with the attention reason that stays. */
export interface DisputeAct {
  entry: AuditEntry;
  attention: PaymentAttention | null;
}

/** Never more than the amount, nor than what settled. */
const REFUNDABLE = { $min: ['$amount', { $ifNull: ['$settled_amount', '$amount'] }] };
/** All that refunds take, also beyond the amount. */
const TAKEN = { $add: ['$refunded', { $ifNull: ['$refunded_over', 0] }] };
const DISPUTED = { $subtract: [{ $sum: '$disputes.amount' }, { $sum: '$disputes.won' }] };
const UNDISPUTED = { $subtract: [REFUNDABLE, DISPUTED] };
const REMAINING = { $subtract: [UNDISPUTED, '$refunded'] };

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
    /** Reads the payers of payments after a position, the oldest first. */
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
    /** Replaces an encrypted payer unless it has changed. */
    reencryptPayer: (_id: string, before: string, sealed: string) =>
      payments.updateOne(
        { _id, 'customer.sealed': before },
        { $set: { 'customer.sealed': sealed } },
      ),
    redactPayers: (ids: string[]) =>
      payments.updateMany(
        { _id: { $in: ids } },
        { $set: { 'customer.sealed': null, browser_hash: null } },
      ),
    /** Erases a payer with the merchant's name for it, unless the payment has changed. */
    erasePayer: (
      _id: string,
      { status, customer }: Pick<PaymentDocument, 'status' | 'customer'>,
      session: ClientSession,
    ) =>
      updateOnce(
        {
          _id,
          status,
          'customer.sealed': customer.sealed,
          'customer.reference': customer.reference,
        },
        { $set: { customer: { reference: null, sealed: null }, browser_hash: null } },
        session,
      ),
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
     * payment. One with an open dispute has none. @see docs/api.md#refunds
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
      payments.updateOne(
        { _id: id, disputed_at: null, dispute_ended_at: { $not: { $gte: disputed_at } } },
        { $set: { disputed_at } },
      ),
    /** Records money in question once; false when it is recorded already. */
    addReceipt: (id: string, receipt: Receipt, session: ClientSession) =>
      updateOnce(
        { _id: id, 'receipts.id': { $ne: receipt.id } },
        { $push: { receipts: receipt } },
        session,
      ),
    /** Notes a callback that changed no status, so that no later run reads it again. */
    noteApplied: (id: string, callback_id: string) =>
      payments.updateOne({ _id: id }, { $addToSet: { applied_callbacks: callback_id } }),
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
    /**
     * Adds a dispute once. By an act, it answers the bank's report of a chargeback, so that what is
     * left of the payment can be refunded.
     */
    openDispute: (
      id: string,
      dispute: Dispute,
      act: DisputeAct | undefined,
      session: ClientSession,
    ) =>
      updateOnce(
        { _id: id, status: 'settled', 'disputes.id': { $ne: dispute.id } },
        [
          {
            $set: {
              disputes: {
                $concatArrays: [{ $ifNull: ['$disputes', []] }, [{ $literal: dispute }]],
              },
              updated_at: { $max: ['$updated_at', dispute.opened_at] },
            },
          },
          ...(act === undefined ? [] : [{ $set: buildActChange(act) }]),
        ],
        session,
      ),
    /**
     * Closes a dispute once, or ends the bank's report of a chargeback that took no money.
     * @param from its present states; undefined: the report
     * @param act of an operator, who ends the report, too
     */
    closeDispute: (
      id: string,
      from: { id: string; states: readonly Dispute['state'][] } | undefined,
      {
        at,
        change = {},
        act,
      }: { at: string; change?: Partial<Dispute>; act?: Partial<DisputeAct> },
      session: ClientSession,
    ) => {
      const { entry, attention } = act ?? {};
      const closed = Object.entries(change).map(([field, value]) => [`disputes.$.${field}`, value]);
      return updateOnce(
        from === undefined
          ? { _id: id, disputed_at: { $ne: null } }
          : { _id: id, disputes: { $elemMatch: { id: from.id, state: { $in: from.states } } } },
        {
          $set: {
            ...Object.fromEntries(closed),
            ...(act === undefined ? {} : { disputed_at: null, dispute_ended_at: at }),
            ...omitUndefined({ attention }),
          },
          $max: { updated_at: at, ...(act === undefined ? {} : { attention_at: Date.parse(at) }) },
          ...(entry === undefined ? {} : { $push: { audit: entry } }),
        },
        session,
      );
    },
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

/** Keeps the payment disputed where the chargeback has left nothing to refund. */
function buildActChange({ entry, attention }: DisputeAct) {
  return {
    attention,
    attention_at: { $max: ['$attention_at', Date.parse(entry.when)] },
    disputed_at: {
      $cond: [{ $gt: [REMAINING, 0] }, null, { $ifNull: ['$disputed_at', entry.when] }],
    },
    dispute_ended_at: entry.when,
    audit: { $concatArrays: ['$audit', [{ $literal: entry }]] },
  };
}
