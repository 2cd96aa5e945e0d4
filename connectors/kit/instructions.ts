import type { Db } from 'mongodb';
import { isDuplicateKey } from '../../src/base/mongo';

interface Refused {
  outcome: 'refused';
  code: string;
  message: string;
}

const CANCELLED: Refused = {
  outcome: 'refused',
  code: 'cancelled',
  message: 'The payout was cancelled before it reached the bank.',
};

/** Longer than the service repeats or cancels an instruction. */
const RETENTION_S = 400 * 86_400;

/** Record of an instruction, written before the bank is called. */
export interface InstructionRecord<A = unknown> {
  /** Resource and instruction ID, such as `payout:{payout_id}`. */
  _id: string;
  /** End of the last attempt, after which it cannot reach the bank; null before the first. */
  deadline: Date | null;
  /** First answer of the bank, without personal data; null without one. */
  answer: A | null;
  /** Whether a session was closed, perhaps before it was opened. */
  closed?: boolean;
  /** Begin of the retention. */
  changed_at?: Date;
}

/** The outcome may still change: the service asks again. */
export class AttemptInProgress extends Error {
  override readonly name = 'AttemptInProgress';

  constructor() {
    super('An attempt of this instruction may still reach the bank: ask again.');
  }
}

export type InstructionStore = ReturnType<typeof createInstructionStore>;

/**
 * Stores which instructions have begun, so that one has one effect: two attempts never run at once,
 * and a cancelled instruction never begins. Every change is one conditional write.
 */
export function createInstructionStore(db: Db, now: () => Date) {
  const records = db.collection<InstructionRecord>('instructions');
  const get = (_id: string) => records.findOne({ _id });
  /** Writes to a fitting or new record. @returns false if another one exists */
  const write = async (_id: string, filter: object, $set: Partial<InstructionRecord>) => {
    try {
      const first = Object.entries({ deadline: null, answer: null });
      const $setOnInsert = Object.fromEntries(first.filter(([name]) => !(name in $set)));
      const change = { $set: { ...$set, changed_at: now() } };
      const update = Object.keys($setOnInsert).length > 0 ? { ...change, $setOnInsert } : change;
      await records.updateOne({ _id, ...filter }, update, { upsert: true });
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  };
  const isOver = () => ({ $or: [{ deadline: null }, { deadline: { $lte: now() } }] });
  return {
    ensureIndexes: () =>
      records.createIndex({ changed_at: 1 }, { name: 'kept', expireAfterSeconds: RETENTION_S }),
    get,
    /** Whether an attempt has begun, and may have reached the bank. */
    hasSent: async (): Promise<boolean> =>
      (await records.findOne({ deadline: { $ne: null } })) !== null,
    /**
     * Begins an attempt. @returns the record of another one that was answered or cancelled
     * @throws AttemptInProgress while another attempt may reach the bank
     */
    begin: async (_id: string, deadline: Date): Promise<InstructionRecord | null> => {
      if (await write(_id, { answer: null, ...isOver() }, { deadline })) return null;
      const existing = await get(_id);
      if (existing === null || existing.answer === null) throw new AttemptInProgress();
      return existing;
    },
    /** Stores only the first answer. */
    answer: async (_id: string, answer: object): Promise<void> => {
      const changed_at = now();
      await records.updateOne({ _id, answer: null }, { $set: { answer, changed_at } });
    },
    /** Cancels an instruction unless an attempt was answered or may reach the bank. */
    cancel: (_id: string): Promise<boolean> =>
      write(_id, { answer: null, ...isOver() }, { answer: CANCELLED }),
    /** Stores the answer for a session. @returns false if it was closed meanwhile */
    open: (_id: string, answer: object): Promise<boolean> =>
      write(_id, { closed: { $ne: true } }, { answer }),
    /** Closes a session, also one that was never opened. */
    close: async (_id: string): Promise<void> => {
      await write(_id, {}, { closed: true });
    },
  };
}
