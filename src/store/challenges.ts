import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';

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
