import type { ClientSession, Collection, Db } from 'mongodb';
import type { SettlementAnswer, SettlementInstruction } from '../../contract/crypto';

/** Settlement in the chain's own book, with the first answer to its instruction. */
interface BookedSettlement {
  /** The settlement's id, which is the instruction's too. */
  _id: string;
  instruction: SettlementInstruction;
  /** First answer; null where the instruction got lost. */
  answer: SettlementAnswer | null;
  created_at: Date;
}

export type SettlementBook = ReturnType<typeof createSettlementBook>;

export function createSettlementBook(db: Db, now: () => Date) {
  const entries: Collection<BookedSettlement> = db.collection('chain_settlements');
  return {
    get: (_id: string) => entries.findOne({ _id }),
    /** Remembers that an instruction got lost; true for the first one of this id only. */
    lose: async (instruction: SettlementInstruction): Promise<boolean> => {
      const first = { instruction, answer: null, created_at: now() };
      const { upsertedCount } = await entries.updateOne(
        { _id: instruction.crypto_settlement_id },
        { $setOnInsert: first },
        { upsert: true },
      );
      return upsertedCount === 1;
    },
    /**
     * Writes down the answer to an instruction.
     * @throws a duplicate key error when one of this id has been answered before
     */
    record: async (
      instruction: SettlementInstruction,
      answer: SettlementAnswer,
      session: ClientSession,
    ): Promise<void> => {
      const _id = instruction.crypto_settlement_id;
      const entry = { instruction, answer, created_at: now() };
      // A lost entry is replaced; with any other the insert fails on its ID.
      await entries.replaceOne({ _id, answer: null }, entry, { upsert: true, session });
    },
  };
}
