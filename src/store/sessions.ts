import type { ClientSession, Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';

/** Message that the next page shows once. */
export interface Flash {
  tone: 'good' | 'bad';
  text: string;
}

/** Session of the dashboard. */
export interface SessionDocument {
  /** SHA-256 of the browser's cookie, hex. */
  _id: string;
  user_id: string;
  account_id: string;
  /** `password` waits for the second factor; `whole` is signed in. */
  stage: 'password' | 'whole';
  created_at: Date;
  /** When it ends if it is not used; moved on by use, up to `ends_at`. */
  expires_at: Date;
  /** When it ends in any case. */
  ends_at: Date;
  flash: Flash | null;
}

export type SessionStore = ReturnType<typeof createSessionStore>;

export function createSessionStore(db: Db) {
  const sessions: Collection<SessionDocument> =
    db.collection<SessionDocument>('dashboard_sessions');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        sessions,
        [
          { key: { user_id: 1 }, name: 'user' },
          { key: { expires_at: 1 }, name: 'expired', expireAfterSeconds: 0 },
        ],
        missing,
      ),
    insert: (document: SessionDocument, session?: ClientSession) =>
      sessions.insertOne(document, { session }),
    /** Finds a session that is not over; MongoDB removes those that are within a minute. */
    find: (id: string, now: Date) => sessions.findOne({ _id: id, expires_at: { $gt: now } }),
    touch: (id: string, expires_at: Date) =>
      sessions.updateOne({ _id: id }, { $set: { expires_at } }),
    setFlash: (id: string, flash: Flash | null) =>
      sessions.updateOne({ _id: id }, { $set: { flash } }),
    end: (id: string) => sessions.deleteOne({ _id: id }),
    /** Ends the sessions of a user, all but one if it is given. */
    endAll: (user_id: string, session: ClientSession, exceptId?: string) =>
      sessions.deleteMany(
        exceptId === undefined ? { user_id } : { user_id, _id: { $ne: exceptId } },
        {
          session,
        },
      ),
  };
}
