import type { ClientSession, Collection, Db } from 'mongodb';
import type { Role } from '../domain/dashboard-role';
import type { Sealed } from '../keys/seal';
import { makeIndexes, type TakeBuild } from '../mongo-indexes';

/** Person who signs in to the dashboard of one account. */
export interface UserDocument {
  _id: string;
  account_id: string;
  /** In lower case; one account each. */
  email: string;
  role: Role;
  /** Argon2id. */
  password_hash: string;
  /** Second factor; null while there is none. */
  totp: SecondFactor | null;
  /** Second factor that is being set up, until its first code. */
  totp_offered: Sealed | null;
  /** SHA-256 of the recovery codes that are left, hex. */
  recovery_hashes: string[];
  created_at: string;
  signed_in_at: string | null;
}

interface SecondFactor {
  sealed: Sealed;
  /** Latest time step whose code was used: no code works twice. */
  step: number;
}

export function createUserStore(db: Db) {
  const users: Collection<UserDocument> = db.collection<UserDocument>('users');
  return {
    ensureIndexes: (later?: TakeBuild) =>
      makeIndexes(
        users,
        [
          { key: { email: 1 }, name: 'email', unique: true },
          { key: { account_id: 1, created_at: 1 }, name: 'account' },
        ],
        later,
      ),
    insert: (user: UserDocument, session?: ClientSession) => users.insertOne(user, { session }),
    get: (id: string) => users.findOne({ _id: id }),
    byEmail: (email: string) => users.findOne({ email }),
  };
}
