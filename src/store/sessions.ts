import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';

export interface Flash {
  tone: 'good' | 'bad';
  text: string;
}

export interface SessionDocument {
  _id: string;
  user_id: string;
  account_id: string;
  /** `password` waits for the second factor. */
  stage: 'password' | 'whole';
  created_at: Date;
  /** Precise to the minute. */
  seen_at: Date;
  browser?: string;
  /** Network address of the sign-in. */
  address?: string;
  /** Each use extends it, up to `ends_at`. */
  expires_at: Date;
  ends_at: Date;
  /** Shown on the next page only. */
  flash: Flash | null;
}

const LIST_MAX = 100;

export type SessionStore = ReturnType<typeof createSessionStore>;

export function createSessionStore(db: Db) {
  const sessions = db.collection<SessionDocument>('dashboard_sessions');
  return {
    ensureIndexes: indexBuilder(sessions, [
      { key: { user_id: 1 }, name: 'user' },
      { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    insert: (document: SessionDocument, session?: ClientSession) =>
      sessions.insertOne(document, { session }),
    /** MongoDB removes expired ones only within a minute. */
    find: (id: string, now: Date, session?: ClientSession) =>
      sessions.findOne({ _id: id, expires_at: { $gt: now } }, { session }),
    touch: (id: string, use: { expires_at: Date; seen_at: Date }) =>
      sessions.updateOne({ _id: id }, { $set: use }),
    listSignedIn: (user_id: string, now: Date) =>
      sessions
        .find({ user_id, stage: 'whole', expires_at: { $gt: now } })
        .sort({ seen_at: -1, created_at: -1 })
        .limit(LIST_MAX)
        .toArray(),
    setFlash: (id: string, flash: Flash | null) =>
      sessions.updateOne({ _id: id }, { $set: { flash } }),
    end: (id: string) => sessions.deleteOne({ _id: id }),
    /** @returns the ended session; null when the user has no such session */
    endOwn: (id: string, user_id: string, session: ClientSession) =>
      sessions.findOneAndDelete({ _id: id, user_id }, { session }),
    endAll: (user_id: string, session: ClientSession, exceptId?: string) => {
      const others = exceptId === undefined ? {} : { _id: { $ne: exceptId } };
      return sessions.deleteMany({ user_id, ...others }, { session });
    },
  };
}

/** Answered once, by one browser, with a passkey. */
interface ChallengeDocument {
  /** SHA-256 of the challenge, hex. */
  _id: string;
  /** Hash of the device cookie or of the session. */
  browser: string;
  expires_at: Date;
}

export function createChallengeStore(db: Db) {
  const challenges = db.collection<ChallengeDocument>('dashboard_challenges');
  return {
    ensureIndexes: indexBuilder(challenges, [
      { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
    ]),
    insert: (challenge: ChallengeDocument) => challenges.insertOne(challenge),
    /** @returns false when the challenge is used, expired, or another browser's */
    consume: async (id: string, browser: string, now: Date): Promise<boolean> => {
      const filter = { _id: id, browser, expires_at: { $gt: now } };
      return (await challenges.deleteOne(filter)).deletedCount === 1;
    },
  };
}
