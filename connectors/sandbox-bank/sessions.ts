import { randomBytes } from 'node:crypto';
import type { ClientSession, Collection, Db } from 'mongodb';
import { derivedUuid } from '../../src/ids';
import { isDuplicateKey } from '../../src/mongo';
import type { SessionInstruction } from '../contract/activities';

/**
 * - `open`: the customer may decide
 * - `approved`: money is held; then `settled`, or `declined` when the bank takes it back
 * - `closed`: called off before a decision, also where it was never opened
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

/** The bank's own book of one payment. */
export interface BankSession {
  /** The payment's id, which is the instruction's too. */
  _id: string;
  /** 256 bits; whoever knows it is the customer. */
  token: string;
  status: SessionStatus;
  /** Null when it was closed or voided before it was ever opened. */
  instruction: SessionInstruction | null;
  bank_reference: string;
  created_at: Date;
  decided_at: Date | null;
  /** Why it was declined. */
  reason: string | null;
  reversal: { instruction_id: string; amount: number; currency: string } | null;
}

export type SessionStore = ReturnType<typeof createSessionStore>;

/** The same for the same instruction, however often it is asked. */
export function bankReference(instructionId: string): string {
  const digits = derivedUuid(`sandbox-bank:${instructionId}`).replaceAll('-', '');
  return `SBX${digits.slice(0, 12).toUpperCase()}`;
}

export function createSessionStore(db: Db, now: () => Date) {
  const sessions: Collection<BankSession> = db.collection<BankSession>('sessions');
  const blank = (_id: string): BankSession => ({
    _id,
    token: randomBytes(32).toString('base64url'),
    status: 'open',
    instruction: null,
    bank_reference: bankReference(_id),
    created_at: now(),
    decided_at: null,
    reason: null,
    reversal: null,
  });
  return {
    ensureIndexes: () => sessions.createIndex({ token: 1 }, { name: 'token', unique: true }),
    get: (_id: string, session?: ClientSession) => sessions.findOne({ _id }, { session }),
    byToken: (token: string) => sessions.findOne({ token }),
    /** The payment's session as its first instruction made it; `made` when that is this one. */
    make: async (_id: string, first: Partial<BankSession>) => {
      const document: BankSession = { ...blank(_id), ...first };
      try {
        await sessions.insertOne(document);
        return { session: document, made: true };
      } catch (error) {
        const session = isDuplicateKey(error) ? await sessions.findOne({ _id }) : null;
        if (session === null) throw error;
        return { session, made: false };
      }
    },
    /** One conditional step; the session after it, or null when it isn't in `from` (any more). */
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
    /** The customer's decision: only while open and in time; null otherwise. */
    decide: (token: string, change: Partial<BankSession>, session: ClientSession) =>
      sessions.findOneAndUpdate(
        {
          token,
          status: 'open',
          'instruction.expires_at': { $gt: now().toISOString() },
        },
        { $set: { ...change, decided_at: now() } },
        { session, returnDocument: 'after' },
      ),
  };
}
