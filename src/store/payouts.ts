import type { ClientSession, Collection, Db } from 'mongodb';
import type { Failure } from '../domain/lifecycle';
import type { PayoutAttention, PayoutStatus, Return } from '../domain/payout';
import { type AttentionAct, type AuditEntry, attentionChange } from './attention';

/** The payout as it stands: wire fields in wire names (spec §2.4), and what only we see. */
export interface PayoutDocument {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** Moves made so far; every write of the lifecycle is conditional on it. */
  version: number;
  /** Place in lists. @see src/domain/cursor.ts */
  position: string;
  status: PayoutStatus;
  /** Minor units. */
  amount: number;
  /** Minor units, drawn beside the amount. */
  fee: number;
  currency: string;
  /** Rail id. */
  method: string;
  recipient_id: string;
  balance_account: string;
  reference: string | null;
  /** The JSON text as the merchant wrote it. */
  metadata: string;
  failure: Failure | null;
  returned: Return | null;
  created_at: string;
  updated_at: string;
  /** When the money was captured; null while it is only reserved. */
  sent_at: string | null;
  completed_at: string | null;
  connector: string;
  bank_reference: string | null;
  /** ISO 8601; past it operators are told. */
  due_at: string;
  attention: PayoutAttention | null;
  request_id: string;
  audit: AuditEntry[];
}

export interface PayoutFilter {
  account_id: string;
  livemode: boolean;
  status?: string;
  /** Rows strictly before this position. */
  before?: string;
  limit: number;
}

export type PayoutStore = ReturnType<typeof createPayoutStore>;

export function createPayoutStore(db: Db) {
  const payouts: Collection<PayoutDocument> = db.collection<PayoutDocument>('payouts');
  const owned = { account_id: 1, livemode: 1 } as const;
  return {
    ensureIndexes: () =>
      payouts.createIndexes([
        { key: { ...owned, position: -1 }, name: 'position', unique: true },
        { key: { ...owned, status: 1, position: -1 }, name: 'status_position' },
      ]),
    insert: (payout: PayoutDocument, session: ClientSession) =>
      payouts.insertOne(payout, { session }),
    /** By id alone: for the service's own steps. */
    get: (id: string) => payouts.findOne({ _id: id }),
    /** By id within one account and environment: what a merchant may see. */
    find: (id: string, account_id: string, livemode: boolean) =>
      payouts.findOne({ _id: id, account_id, livemode }),
    list: ({ before, limit, ...equal }: PayoutFilter): Promise<PayoutDocument[]> => {
      const wanted = Object.fromEntries(Object.entries(equal).filter(([, v]) => v !== undefined));
      return payouts
        .find({ ...wanted, ...(before === undefined ? {} : { position: { $lt: before } }) })
        .sort({ position: -1 })
        .limit(limit)
        .toArray();
    },
    /** One conditional write; null when the payout is no longer at `version`. */
    update: (
      id: string,
      version: number,
      change: Partial<PayoutDocument>,
      audit: AuditEntry[],
      session: ClientSession,
    ) =>
      payouts.findOneAndUpdate(
        { _id: id, version },
        { $set: change, ...(audit.length > 0 ? { $push: { audit: { $each: audit } } } : {}) },
        { session, returnDocument: 'after' },
      ),
    /** Marks or unmarks it for operators, outside the count of versions, while the state stays. */
    setAttention: (
      id: string,
      version: number,
      attention: PayoutAttention | null,
      act: AttentionAct | null,
    ) => {
      const { unlessDone, change } = attentionChange(attention, act);
      return payouts.updateOne({ _id: id, version, ...unlessDone }, change);
    },
  };
}
