import type { ClientSession, Db, MongoClient } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import type { DisputeLookup, DisputeQuestion, DisputeReply } from '../contract/activities';

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

interface AnswerDeps {
  mongo: MongoClient;
  answers: AnswerBook;
}

/**
 * Takes evidence or an acceptance, once; the dispute is decided by a simulation.
 * @param call `assertAwaited` throws once the connector has given up
 */
export async function takeAnswer(
  { mongo, answers }: AnswerDeps,
  { input, assertAwaited }: { input: DisputeQuestion; assertAwaited: () => void },
): Promise<DisputeReply> {
  await inTransaction(mongo, async (session) => {
    assertAwaited();
    await answers.record(input.instruction_id, input.bank_dispute_id, session);
  });
  return { outcome: 'accepted' };
}

export async function lookUpAnswer(
  { answers }: Pick<AnswerDeps, 'answers'>,
  { instruction_id }: DisputeQuestion,
): Promise<DisputeLookup> {
  const isKnown = (await answers.get(instruction_id)) !== null;
  return isKnown ? { outcome: 'accepted' } : { outcome: 'not_found' };
}
