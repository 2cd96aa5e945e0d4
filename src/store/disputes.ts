import type { ClientSession, Db } from 'mongodb';
import { deriveUuid } from '../base/ids';
import { indexBuilder } from '../base/mongo-indexes';
import { omitUndefined } from '../domain/defined';
import {
  DISPUTE_IN_FLIGHT,
  type DisputeAnswer,
  type DisputeAttention,
  type DisputeStatus,
} from '../domain/dispute/dispute';
import type { DisputeTransfer } from '../domain/dispute/report';
import type { Encrypted } from '../encryption/encrypter';
import { LIST_MS_MAX, OWNER, readPage, resourceIndexes } from './list';
import { PAYMENT } from './refunds';
import { type ResourceDocument, resourceStore } from './resource';

/** Evidence of the merchant, which only its connector decrypts. */
export interface StoredEvidence {
  /** Null once the bank has it, or it is erased. */
  ciphertext: Encrypted | null;
  /** Keyed hash, by which a repeat is known. */
  fingerprint: string;
  kid: string;
}

/** @see docs/api.md#disputes */
export interface DisputeDocument extends ResourceDocument<DisputeStatus, DisputeAttention> {
  payment_id: string;
  /** The bank's for the dispute, or id of the act that posted it. */
  name: string;
  /** Reported by the bank, or posted by an operator. */
  kind: 'dispute_opened' | 'clawed_back';
  /** Minor units that it took, without what came back. */
  amount: number;
  /** Minor units, as `amount`. */
  fee: number;
  /** The scheme's code. */
  reason: string | null;
  evidence_due_at: string | null;
  evidence_submitted_at: string | null;
  closed_at: string | null;
  /** Oldest first. */
  transfers: DisputeTransfer[];
  /** Time of the bank's last report of a status. */
  reported_at?: string;
  evidence?: StoredEvidence;
  /** Answer that the bank has not confirmed. */
  answering?: DisputeAnswer | null;
  answering_since?: string;
  /** The bank refused it, for good. */
  answers_refused?: DisputeAnswer[];
  reminded_at?: string;
}

/** Derives the id, so that a repeated report finds its dispute. */
export function disputeId(payment_id: string, name: string): string {
  return `dp_${deriveUuid(`dispute:${payment_id}:${name}`)}`;
}

/** Bound to the ciphertext of its evidence. */
export function evidenceOwner(dispute_id: string): string {
  return `evidence/${dispute_id}`;
}

export type DisputeStore = ReturnType<typeof createDisputeStore>;

export interface DisputeFilter {
  account_id?: string | undefined;
  livemode?: boolean | undefined;
  status?: DisputeStatus | undefined;
  payment_id?: string | undefined;
  /** Row that ends the page before. */
  before?: Pick<DisputeDocument, '_id' | 'position'> | undefined;
}

export function createDisputeStore(db: Db) {
  const disputes = db.collection<DisputeDocument>('disputes');
  return {
    ...resourceStore<DisputeDocument, 'payment_id' | 'status' | 'method'>(
      disputes,
      DISPUTE_IN_FLIGHT,
    ),
    /** Oldest first. */
    forPayment: (payment_id: string, session?: ClientSession): Promise<DisputeDocument[]> =>
      disputes.find({ payment_id }, { session }).sort({ position: 1 }).toArray(),
    /** Writes what the transaction has decided on the document that it read. */
    change: async (
      _id: string,
      change: Partial<DisputeDocument>,
      session: ClientSession,
    ): Promise<void> => {
      await disputes.updateOne({ _id }, { $set: change }, { session });
    },
    noteApplied: (_id: string, callback_id: string, session: ClientSession) =>
      disputes.updateOne({ _id }, { $addToSet: { applied_callbacks: callback_id } }, { session }),
    /**
     * Stores evidence once, while the bank still takes it.
     * @param now ISO 8601, account time
     */
    storeEvidence: async (_id: string, evidence: StoredEvidence, now: string): Promise<boolean> => {
      const isInTime = { $or: [{ evidence_due_at: null }, { evidence_due_at: { $gt: now } }] };
      const status = { $in: [...DISPUTE_IN_FLIGHT] };
      const isFree = { evidence: { $exists: false }, answering: { $ne: 'acceptance' as const } };
      const filter = { _id, status, ...isFree, ...isInTime };
      return (await disputes.updateOne(filter, { $set: { evidence } })).matchedCount === 1;
    },
    /** Erases evidence that nobody sends any more. */
    dropEvidence: (_id: string, session: ClientSession) =>
      disputes.updateOne(
        { _id, evidence: { $exists: true } },
        { $set: { 'evidence.ciphertext': null } },
        { session },
      ),
    /** Pages through evidence that is not erased, by id. */
    listEvidence: (after: string, limit: number): Promise<DisputeDocument[]> =>
      readPage<DisputeDocument>(disputes, after, limit, {
        'evidence.ciphertext': { $type: 'string' },
      }),
    reencryptEvidence: (
      _id: string,
      before: Encrypted,
      next: { ciphertext: Encrypted; kid: string },
    ) =>
      disputes.updateOne(
        { _id, 'evidence.ciphertext': before },
        { $set: { 'evidence.ciphertext': next.ciphertext, 'evidence.kid': next.kid } },
      ),
    eraseEvidence: (payment_ids: readonly string[], session?: ClientSession) =>
      disputes.updateMany(
        { payment_id: { $in: [...payment_ids] }, evidence: { $exists: true } },
        { $set: { 'evidence.ciphertext': null } },
        { session },
      ),
    /** Reads newest first, of all accounts where the filter names none. */
    listAll: ({
      before,
      limit,
      ...equal
    }: DisputeFilter & { limit: number }): Promise<DisputeDocument[]> =>
      disputes
        .find(
          omitUndefined({
            ...equal,
            ...(before && {
              $or: [
                { position: { $lt: before.position } },
                { position: before.position, _id: { $lt: before._id } },
              ],
            }),
          }),
        )
        .sort({ position: -1, _id: -1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray(),
    /** Reads those that can still be answered, with the first deadline first, and none last. */
    listDue: async (
      account_id: string,
      livemode: boolean,
      { now, limit }: { now: string; limit: number },
    ): Promise<DisputeDocument[]> => {
      const read = (evidence_due_at: { $gt: string } | null) =>
        disputes
          .find({ account_id, livemode, status: 'needs_response', evidence_due_at })
          .sort({ evidence_due_at: 1 })
          .limit(limit)
          .maxTimeMS(LIST_MS_MAX)
          .toArray();
      const [due, others] = await Promise.all([read({ $gt: now }), read(null)]);
      return [...due, ...others].slice(0, limit);
    },
    ensureIndexes: indexBuilder(disputes, [
      ...resourceIndexes(DISPUTE_IN_FLIGHT, 'status', 'method'),
      { key: { ...OWNER, payment_id: 1, position: -1 }, name: 'payment_position' },
      { key: { position: -1, _id: -1 }, name: 'newest' },
      { key: { ...OWNER, status: 1, evidence_due_at: 1 }, name: 'status_due' },
      PAYMENT,
      { key: { payment_id: 1, name: 1 }, name: 'name', unique: true },
    ]),
  };
}
