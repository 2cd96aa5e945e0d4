import type { ClientSession, Db } from 'mongodb';
import { deriveUuid } from '../../../base/ids';
import { type BankDecision, decideMovements, type Movement } from '../../../domain/banks/sandbox';
import { omitUndefined } from '../../../domain/defined';

export interface MovementDocument extends Movement {
  /** Resource and position, so that two decisions at once have a conflict. */
  _id: string;
  /** Callback or instruction. */
  decision: string;
  booked_at: Date;
  /** UTC day of the booking, and value date. */
  day: string;
  /** Null until a statement has it. */
  statement: string | null;
}

const MOVEMENTS = 'movements';

export function bankReference(instructionId: string): string {
  const digits = deriveUuid(`sandbox-bank:${instructionId}`).replaceAll('-', '');
  return `SBX${digits.slice(0, 12).toUpperCase()}`;
}

export function sandboxBankDatabase(database: string): string {
  return `${database}_sandbox_bank`;
}

export type MovementStore = ReturnType<typeof createMovementStore>;

/** @param db the bank's own */
export function createMovementStore(db: Db, now: () => Date) {
  const movements = db.collection<MovementDocument>(MOVEMENTS);
  return {
    collection: movements,
    ensureIndexes: () =>
      movements.createIndexes([
        { key: { resource_id: 1 }, name: 'resource' },
        { key: { decision: 1 }, name: 'decision' },
        { key: { bank_reference: 1 }, name: 'reference', unique: true },
        { key: { currency: 1, statement: 1, booked_at: 1 }, name: 'statement' },
      ]),
    hasMoved: async (decision: string): Promise<boolean> =>
      (await movements.findOne({ decision })) !== null,
    /** Finds it also if it was sent back since. */
    findSettlement: (resource_id: string, session: ClientSession) =>
      movements.findOne({ resource_id, name: 'settled' }, { session }),
    /**
     * Writes what a decision moves, once, in the transaction of the decision.
     * @throws MongoServerError duplicate key if another decision about the resource was faster
     */
    book: async (
      decision: BankDecision & { decision: string },
      session: ClientSession,
    ): Promise<void> => {
      const { resource, resource_id, name, bank_reference, fee, currency } = decision;
      const earlier = await movements.find({ resource_id }, { session }).toArray();
      if (earlier.some((each) => each.decision === decision.decision)) return;
      const booked_at = now();
      const rows = decideMovements(decision, earlier).map((amount, index) => {
        const _id = `${resource_id}:${earlier.length + index + 1}`;
        const isFree =
          index === 0 && !earlier.some((each) => each.bank_reference === bank_reference);
        return {
          _id,
          ...{ resource, resource_id, name, amount, currency, ...omitUndefined({ fee }) },
          bank_reference: isFree ? bank_reference : bankReference(`movement:${_id}`),
          decision: decision.decision,
          booked_at,
          day: booked_at.toISOString().slice(0, 10),
          statement: null,
        };
      });
      if (rows.length > 0) await movements.insertMany(rows, { session });
    },
  };
}
