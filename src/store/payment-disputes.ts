import type { ClientSession, Collection } from 'mongodb';
import { omitUndefined } from '../domain/defined';
import type { Dispute } from '../domain/payment/dispute';
import type { PaymentAttention } from '../domain/payment/payment';
import type { AuditEntry } from './attention';
import type { PaymentDocument } from './payment-document';
import { REMAINING } from './payment-refunds';
import { updateOnce } from './payment-updates';

export interface DisputeAct {
  entry: AuditEntry;
  attention: PaymentAttention | null;
}

export function paymentDisputes(payments: Collection<PaymentDocument>) {
  return {
    dispute: (id: string, disputed_at: string, session: ClientSession) =>
      payments.updateOne(
        { _id: id, disputed_at: null, dispute_ended_at: { $not: { $gte: disputed_at } } },
        { $set: { disputed_at } },
        { session },
      ),
    /**
     * Adds a dispute once. An act answers the bank's report of a chargeback, so that the rest of
     * the payment can be refunded.
     */
    openDispute: (
      id: string,
      dispute: Dispute,
      act: DisputeAct | undefined,
      session: ClientSession,
    ) =>
      updateOnce(
        payments,
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
     * Closes a dispute once, or ends the report of a chargeback that took no money.
     * @param from present states; undefined: the report
     * @param act ends the report, too
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
      // Reasons are ordered by real time, and the account's may be later.
      const attention_at = Math.min(Date.now(), Date.parse(entry?.when ?? at));
      const closed = Object.entries(change).map(([field, value]) => [`disputes.$.${field}`, value]);
      return updateOnce(
        payments,
        from === undefined
          ? { _id: id, disputed_at: { $ne: null } }
          : { _id: id, disputes: { $elemMatch: { id: from.id, state: { $in: from.states } } } },
        {
          $set: {
            ...Object.fromEntries(closed),
            ...(act === undefined ? {} : { disputed_at: null, dispute_ended_at: at }),
            ...omitUndefined({ attention }),
          },
          $max: { updated_at: at, ...(act === undefined ? {} : { attention_at }) },
          ...(entry === undefined ? {} : { $push: { audit: entry } }),
        },
        session,
      );
    },
  };
}

/** A payment whose chargeback left nothing to refund stays disputed. */
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
