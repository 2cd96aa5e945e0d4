import type { ClientSession, Collection, Db, MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import type { PayoutInstruction, RefundInstruction } from '../contract/activities';
import type { Outbox } from './outbox';
import type { PlannedCallback } from './plan';
import { bankReference } from './sessions';

/**
 * - `lost`: the instruction never arrived; the bank knows nothing of it
 * - `refused`: never accepted
 * - a refund is `accepted`; then `settled`, or `failed` when the money could not be sent
 * - a payout is `submitted` (queued) or `sent` (with the scheme); then `completed` or `failed`;
 *   `returned` when the money came back
 */
export type EntryStatus =
  | 'lost'
  | 'refused'
  | 'accepted'
  | 'settled'
  | 'submitted'
  | 'sent'
  | 'completed'
  | 'failed'
  | 'returned';

export interface BankRefusal {
  code: string;
  message: string;
}

/** Entry of a refund or payout in the bank's own book: ids, money and the merchant's text. */
export interface BookEntry {
  /** The resource's id, which is the instruction's too. */
  _id: string;
  instruction: RefundInstruction | PayoutInstruction;
  status: EntryStatus;
  bank_reference: string;
  created_at: Date;
  /** Reason of a refusal; null where there was none. */
  refusal: BankRefusal | null;
  /** Text on the recipient's statement; null where there is none. */
  statement: string | null;
}

/** Outcome of an instruction that has arrived. */
type Outcome = Omit<BookEntry, 'bank_reference' | 'created_at'>;

export type Book = ReturnType<typeof createBook>;

export function createBook(db: Db, name: 'refunds' | 'payouts', now: () => Date) {
  const entries: Collection<BookEntry> = db.collection<BookEntry>(name);
  const stamp = (_id: string) => ({ bank_reference: bankReference(_id), created_at: now() });
  return {
    get: (_id: string) => entries.findOne({ _id }),
    /** Remembers that an instruction got lost; true for the first one of this id only. */
    lose: async (_id: string, instruction: BookEntry['instruction']): Promise<boolean> => {
      const entry = {
        instruction,
        status: 'lost',
        refusal: null,
        statement: null,
        ...stamp(_id),
      } as const;
      const { upsertedCount } = await entries.updateOne(
        { _id },
        { $setOnInsert: entry },
        { upsert: true },
      );
      return upsertedCount === 1;
    },
    /**
     * Writes down the outcome of an instruction.
     * @throws a duplicate key error when one of this id has arrived before
     */
    record: async ({ _id, ...outcome }: Outcome, session: ClientSession): Promise<BookEntry> => {
      const entry = { ...outcome, ...stamp(_id) };
      // A lost entry is replaced; with any other the insert fails on its ID.
      await entries.replaceOne({ _id, status: 'lost' }, entry, { upsert: true, session });
      return { _id, ...entry };
    },
    /** Moves the entry from one of `from`; null when it isn't there (any more). */
    step: (_id: string, from: readonly EntryStatus[], to: EntryStatus) =>
      entries.findOneAndUpdate(
        { _id, status: { $in: [...from] } },
        { $set: { status: to } },
        { returnDocument: 'after' },
      ),
  };
}

/** Instruction on its way into the book, with the callbacks that follow it. */
interface Arrival<R extends 'refund' | 'payout'> extends Outcome {
  resource: R;
  planned: PlannedCallback<R>[];
}

/**
 * Writes entry and callbacks in one transaction, for the first instruction of an id.
 * @returns the entry as the first one made it; `made` when this is the first
 */
export async function acceptIntoBook<R extends 'refund' | 'payout'>(
  { mongo, outbox, book }: { mongo: MongoClient; outbox: Outbox; book: Book },
  { resource, planned, ...outcome }: Arrival<R>,
): Promise<{ entry: BookEntry; isNew: boolean }> {
  const resource_id = outcome._id;
  try {
    const entry = await inTransaction(mongo, async (session) => {
      const { bank_reference, ...fields } = await book.record(outcome, session);
      await outbox.add({ resource, resource_id, bank_reference }, planned, session);
      return { bank_reference, ...fields };
    });
    return { entry, isNew: true };
  } catch (error) {
    const entry = isDuplicateKey(error) ? await book.get(resource_id) : null;
    if (entry === null) throw error;
    return { entry, isNew: false };
  }
}
