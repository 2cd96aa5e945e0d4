import type { ClientSession, Collection, Db } from 'mongodb';
import type { Failure } from '../domain/lifecycle';
import type { RefundAttention, RefundStatus } from '../domain/refund';
import { type AttentionAct, type AuditEntry, attentionChange } from './attention';

/** The refund as it stands: wire fields in wire names (spec §2.2), and what only we see. */
export interface RefundDocument {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** Moves made so far; every write of the lifecycle is conditional on it. */
  version: number;
  /** Place in lists. @see src/domain/cursor.ts */
  position: string;
  payment_id: string;
  /** Minor units. */
  amount: number;
  currency: string;
  status: RefundStatus;
  reason: string | null;
  failure: Failure | null;
  settled_at: string | null;
  created_at: string;
  updated_at: string;
  /** The payment's. */
  method: string;
  connector: string;
  /** The bank's name for the payment, by which it finds what is to be sent back. */
  payment_bank_reference: string | null;
  bank_reference: string | null;
  /** ISO 8601; past it operators are told. */
  due_at: string;
  attention: RefundAttention | null;
  request_id: string;
  audit: AuditEntry[];
}

export interface RefundFilter {
  account_id: string;
  livemode: boolean;
  payment_id?: string;
  status?: string;
  /** Rows strictly before this position. */
  before?: string;
  limit: number;
}

export type RefundStore = ReturnType<typeof createRefundStore>;

export function createRefundStore(db: Db) {
  const refunds: Collection<RefundDocument> = db.collection<RefundDocument>('refunds');
  const owned = { account_id: 1, livemode: 1 } as const;
  return {
    ensureIndexes: () =>
      refunds.createIndexes([
        { key: { ...owned, position: -1 }, name: 'position', unique: true },
        { key: { ...owned, status: 1, position: -1 }, name: 'status_position' },
        { key: { ...owned, payment_id: 1, position: -1 }, name: 'payment_position' },
      ]),
    insert: (refund: RefundDocument, session: ClientSession) =>
      refunds.insertOne(refund, { session }),
    /** By id alone: for the service's own steps. */
    get: (id: string) => refunds.findOne({ _id: id }),
    /** By id within one account and environment: what a merchant may see. */
    find: (id: string, account_id: string, livemode: boolean) =>
      refunds.findOne({ _id: id, account_id, livemode }),
    list: ({ before, limit, ...equal }: RefundFilter): Promise<RefundDocument[]> => {
      const wanted = Object.fromEntries(Object.entries(equal).filter(([, v]) => v !== undefined));
      return refunds
        .find({ ...wanted, ...(before === undefined ? {} : { position: { $lt: before } }) })
        .sort({ position: -1 })
        .limit(limit)
        .toArray();
    },
    /** One conditional write; null when the refund is no longer at `version`. */
    update: (
      id: string,
      version: number,
      change: Partial<RefundDocument>,
      audit: AuditEntry[],
      session: ClientSession,
    ) =>
      refunds.findOneAndUpdate(
        { _id: id, version },
        { $set: change, ...(audit.length > 0 ? { $push: { audit: { $each: audit } } } : {}) },
        { session, returnDocument: 'after' },
      ),
    /** Marks or unmarks it for operators, outside the count of versions, while the state stays. */
    setAttention: (
      id: string,
      version: number,
      attention: RefundAttention | null,
      act: AttentionAct | null,
    ) => {
      const { unlessDone, change } = attentionChange(attention, act);
      return refunds.updateOne({ _id: id, version, ...unlessDone }, change);
    },
  };
}
