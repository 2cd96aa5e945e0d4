import type { ClientSession, Collection, Db, MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { bankReference, type MovementStore } from '../../src/service/banks/sandbox';
import type {
  DisputeLookup,
  DisputeQuestion,
  DisputeReply,
  PayoutInstruction,
  RefundInstruction,
} from '../contract/activities';
import type { SentBook } from '../kit/restore-guard';
import type { Outbox } from './outbox';
import type { PlannedCallback } from './plan';

/**
 * - `lost`: the instruction never arrived
 * - `refused`: never accepted
 * - a refund: `accepted`, then `settled` or `failed`
 * - a payout: `submitted` (queued) or `sent` (with the scheme), then `completed`, `failed` or
 *   `returned`
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

export interface BookEntry {
  _id: string;
  /** Null if it was cancelled before it arrived. */
  instruction: RefundInstruction | PayoutInstruction | null;
  status: EntryStatus;
  bank_reference: string;
  created_at: Date;
  refusal: BankRefusal | null;
  statement: string | null;
}

type Outcome = Omit<BookEntry, 'bank_reference' | 'created_at' | 'instruction'> & {
  instruction: NonNullable<BookEntry['instruction']>;
};

export type Book = ReturnType<typeof createBook>;

export function createBook(db: Db, name: 'refunds' | 'payouts', now: () => Date) {
  const entries: Collection<BookEntry> = db.collection<BookEntry>(name);
  const stamp = (_id: string) => ({ bank_reference: bankReference(_id), created_at: now() });
  return {
    get: (_id: string, session?: ClientSession) => entries.findOne({ _id }, { session }),
    /** Loses only the first instruction of an id. @returns whether it did */
    lose: async (_id: string, instruction: BookEntry['instruction']): Promise<boolean> => {
      const lostEntry = { instruction, status: 'lost', refusal: null, statement: null } as const;
      const update = { $setOnInsert: { ...lostEntry, ...stamp(_id) } };
      const { upsertedCount } = await entries.updateOne({ _id }, update, { upsert: true });
      return upsertedCount === 1;
    },
    /** @throws a duplicate key error if an instruction of this id has arrived before */
    record: async ({ _id, ...outcome }: Outcome, session: ClientSession): Promise<BookEntry> => {
      const entry = { ...outcome, ...stamp(_id) };
      // A lost entry is replaced; with any other the insert fails on its ID.
      await entries.replaceOne({ _id, status: 'lost' }, entry, { upsert: true, session });
      return { _id, ...entry };
    },
    step: (_id: string, from: readonly EntryStatus[], to: EntryStatus, session?: ClientSession) =>
      entries.findOneAndUpdate(
        { _id, status: { $in: [...from] } },
        { $set: { status: to } },
        { session, returnDocument: 'after' },
      ),
  };
}

/** Says whether the bank has decided about a refund or payout. */
export function createSentBook(db: Db): SentBook {
  const hasAny = async (name: string) => (await db.collection(name).findOne({})) !== null;
  return { hasSent: async () => (await hasAny('payouts')) || (await hasAny('refunds')) };
}

interface BookDeps {
  mongo: MongoClient;
  outbox: Outbox;
  movements: MovementStore;
  book: Book;
  /** @throws Error once the connector has given up */
  assertAwaited: () => void;
}

interface Arrival<R extends 'refund' | 'payout'> extends Outcome {
  resource: R;
  planned: PlannedCallback<R>[];
}

/** Writes in one transaction; `isNew`: the instruction is the first. */
export async function acceptIntoBook<R extends 'refund' | 'payout'>(
  { mongo, outbox, movements, book, assertAwaited }: BookDeps,
  { resource, planned, ...outcome }: Arrival<R>,
): Promise<{ entry: BookEntry; isNew: boolean }> {
  const resource_id = outcome._id;
  try {
    const entry = await inTransaction(mongo, async (session) => {
      assertAwaited();
      const { bank_reference, ...fields } = await book.record(outcome, session);
      const about = { resource, resource_id, bank_reference };
      const { status, instruction } = outcome;
      if (status === 'sent') {
        const { amount, currency } = instruction;
        const sent = { ...about, amount, currency, name: status, decision: resource_id };
        await movements.book(sent, session);
      }
      await outbox.add(about, planned, session);
      return { bank_reference, ...fields };
    });
    return { entry, isNew: true };
  } catch (error) {
    const entry = isDuplicateKey(error) ? await book.get(resource_id) : null;
    if (entry === null) throw error;
    return { entry, isNew: false };
  }
}

/** Instruction that has arrived; nothing of the evidence is stored. */
interface Answer {
  /** Instruction ID. */
  _id: string;
  bank_dispute_id: string;
  at: Date;
}

export type AnswerBook = ReturnType<typeof createAnswerBook>;

export function createAnswerBook(db: Db, now: () => Date) {
  const answers = db.collection<Answer>('dispute_answers');
  return {
    get: (_id: string) => answers.findOne({ _id }),
    record: (_id: string, bank_dispute_id: string, session: ClientSession) =>
      answers.updateOne(
        { _id },
        { $setOnInsert: { bank_dispute_id, at: now() } },
        { upsert: true, session },
      ),
  };
}

/**
 * Takes evidence or an acceptance, once; the dispute is decided by a simulation.
 * @param call `assertAwaited` throws once the connector has given up
 */
export async function takeAnswer(
  { mongo, answers }: { mongo: MongoClient; answers: AnswerBook },
  { input, assertAwaited }: { input: DisputeQuestion; assertAwaited: () => void },
): Promise<DisputeReply> {
  await inTransaction(mongo, async (session) => {
    assertAwaited();
    await answers.record(input.instruction_id, input.bank_dispute_id, session);
  });
  return { outcome: 'accepted' };
}

export async function lookUpAnswer(
  { answers }: { answers: AnswerBook },
  { instruction_id }: DisputeQuestion,
): Promise<DisputeLookup> {
  const isKnown = (await answers.get(instruction_id)) !== null;
  return isKnown ? { outcome: 'accepted' } : { outcome: 'not_found' };
}
