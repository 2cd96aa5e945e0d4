import type { ClientSession, Collection, Db } from 'mongodb';
import type { RefundInstruction } from '../contract/activities';
import { bankReference } from './sessions';

/**
 * - `lost`: the instruction never arrived; the bank knows nothing of the refund
 * - `accepted`: taken in; then `settled`, or `failed` when the money could not be sent
 * - `refused`: never taken in
 */
export type BankRefundStatus = 'lost' | 'accepted' | 'settled' | 'failed' | 'refused';

/** The bank's own book of one refund. */
export interface BankRefund {
  /** The refund's id, which is the instruction's too. */
  _id: string;
  instruction: RefundInstruction;
  status: BankRefundStatus;
  bank_reference: string;
  created_at: Date;
  /** Why it was refused; null where it wasn't. */
  refusal: { code: string; message: string } | null;
}

export type BankRefundStore = ReturnType<typeof createBankRefundStore>;

export function createBankRefundStore(db: Db, now: () => Date) {
  const refunds: Collection<BankRefund> = db.collection<BankRefund>('refunds');
  const fresh = (instruction: RefundInstruction) => ({
    instruction,
    bank_reference: bankReference(instruction.refund_id),
    created_at: now(),
    refusal: null,
  });
  return {
    get: (_id: string) => refunds.findOne({ _id }),
    /** Remembers that an instruction got lost; true for the first one of this refund only. */
    lose: async (instruction: RefundInstruction): Promise<boolean> => {
      const { upsertedCount } = await refunds.updateOne(
        { _id: instruction.refund_id },
        { $setOnInsert: { ...fresh(instruction), status: 'lost' } },
        { upsert: true },
      );
      return upsertedCount === 1;
    },
    /**
     * Takes the instruction in, or writes down that it was refused.
     * @throws a duplicate key error when an instruction of this refund has arrived before
     */
    take: async (
      instruction: RefundInstruction,
      refusal: BankRefund['refusal'],
      session: ClientSession,
    ): Promise<BankRefund> => {
      const _id = instruction.refund_id;
      const status: BankRefundStatus = refusal === null ? 'accepted' : 'refused';
      const refund = { ...fresh(instruction), status, refusal };
      // One that got lost gives way; any other stands, and the insert then meets its id.
      await refunds.replaceOne({ _id, status: 'lost' }, refund, { upsert: true, session });
      return { _id, ...refund };
    },
    /** One conditional step; the refund after it, or null when it isn't `from` (any more). */
    step: (_id: string, from: BankRefundStatus, to: BankRefundStatus) =>
      refunds.findOneAndUpdate(
        { _id, status: from },
        { $set: { status: to } },
        { returnDocument: 'after' },
      ),
  };
}
