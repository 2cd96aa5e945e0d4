import { randomBytes } from 'node:crypto';
import type { ClientSession, Collection, Db } from 'mongodb';
import { isDuplicateKey } from '../../src/base/mongo';
import { bankReference } from '../../src/service/banks/sandbox';
import type { SessionInstruction } from '../contract/activities';

/**
 * - `open`: the customer may decide
 * - `approved`: money is held, then `settled`, or `declined` if the bank revokes it
 * - `closed`: canceled before a decision, even if it was never opened
 * - `voided`: the approval was released; `reversed`: the money was sent back
 */
export const SESSION_STATUSES = [
  'open',
  'approved',
  'declined',
  'closed',
  'voided',
  'reversed',
  'settled',
] as const;

export type SessionStatus = (typeof SESSION_STATUSES)[number];

export interface BankSession {
  _id: string;
  /** 256 bits. */
  token: string;
  status: SessionStatus;
  /** Null if the session was closed or voided before it was opened. */
  instruction: SessionInstruction | null;
  bank_reference: string;
  created_at: Date;
  decided_at: Date | null;
  reason: string | null;
  /** A customer may pay twice. */
  reversals: { instruction_id: string; amount: number; currency: string }[];
}

export type SessionStore = ReturnType<typeof createSessionStore>;

export function createSessionStore(db: Db, now: () => Date) {
  const sessions: Collection<BankSession> = db.collection<BankSession>('sessions');
  const newSession = (_id: string): BankSession => ({
    _id,
    token: randomBytes(32).toString('base64url'),
    status: 'open',
    instruction: null,
    bank_reference: bankReference(_id),
    created_at: now(),
    decided_at: null,
    reason: null,
    reversals: [],
  });
  return {
    ensureIndexes: () => sessions.createIndex({ token: 1 }, { name: 'token', unique: true }),
    get: (_id: string, session?: ClientSession) => sessions.findOne({ _id }, { session }),
    byToken: (token: string) => sessions.findOne({ token }),
    make: async (_id: string, first: Partial<BankSession>) => {
      const document: BankSession = { ...newSession(_id), ...first };
      try {
        await sessions.insertOne(document);
        return { session: document, made: true };
      } catch (error) {
        const session = isDuplicateKey(error) ? await sessions.findOne({ _id }) : null;
        if (session === null) throw error;
        return { session, made: false };
      }
    },
    step: (
      _id: string,
      from: readonly SessionStatus[],
      change: Partial<BankSession>,
      session?: ClientSession,
    ) =>
      sessions.findOneAndUpdate(
        { _id, status: { $in: [...from] } },
        { $set: change },
        { session, returnDocument: 'after' },
      ),
    /** @returns false for a repeat */
    reverse: async (
      _id: string,
      reversal: BankSession['reversals'][number],
      session: ClientSession,
    ): Promise<boolean> => {
      const { instruction_id } = reversal;
      const { modifiedCount } = await sessions.updateOne(
        { _id, 'reversals.instruction_id': { $ne: instruction_id } },
        { $set: { status: 'reversed' }, $push: { reversals: reversal } },
        { session },
      );
      return modifiedCount === 1;
    },
    /**
     * @returns null unless the session is open and in time
     * @param at account time
     */
    decide: (token: string, change: Partial<BankSession>, at: Date, session: ClientSession) =>
      sessions.findOneAndUpdate(
        {
          token,
          status: 'open',
          'instruction.expires_at': { $gt: at.toISOString() },
        },
        { $set: { ...change, decided_at: now() } },
        { session, returnDocument: 'after' },
      ),
  };
}
