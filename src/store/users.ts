import type { ClientSession, Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { Role } from '../domain/account/dashboard-role';
import type { Encrypted } from '../encryption/encrypter';

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
  totp_offered: Encrypted | null;
  /** SHA-256 of the recovery codes that are left, hex. */
  recovery_hashes: string[];
  created_at: string;
  signed_in_at: string | null;
  /** When a change of the account's staff, or a sign-in, last held it. */
  held_at?: string;
}

interface SecondFactor {
  sealed: Encrypted;
  /** Latest time step whose code was used: no code works twice. */
  step: number;
}

/** People of an account that are listed. */
const TEAM_MAX = 500;

/** Owner that the secret of a second factor is sealed for. */
export function totpOwner(user_id: string): string {
  return `user/${user_id}/totp`;
}

export function createUserStore(db: Db) {
  const users: Collection<UserDocument> = db.collection<UserDocument>('users');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        users,
        [
          { key: { email: 1 }, name: 'email', unique: true },
          { key: { account_id: 1, created_at: 1 }, name: 'account' },
        ],
        missing,
      ),
    insert: (user: UserDocument, session?: ClientSession) => users.insertOne(user, { session }),
    get: (id: string) => users.findOne({ _id: id }),
    byEmail: (email: string) => users.findOne({ email }),
    /** Oldest first. */
    forAccount: (account_id: string) =>
      users.find({ account_id }).sort({ created_at: 1 }).limit(TEAM_MAX).toArray(),
    /** Finds a person of one account, and holds the account's owners until the session ends. */
    findLocked: async (id: string, account_id: string, now: string, session: ClientSession) => {
      const user = await users.findOne({ _id: id, account_id }, { session });
      if (user === null) return null;
      // Two owners who remove each other at once meet here, and the second finds who is left.
      const lockUpdate = { $set: { held_at: now } };
      const owners = await users.updateMany({ account_id, role: 'owner' }, lockUpdate, { session });
      return { user, owners: owners.matchedCount };
    },
    setRole: (id: string, role: Role, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { role } }, { session }),
    remove: (id: string, session: ClientSession) => users.deleteOne({ _id: id }, { session }),
    setPassword: (id: string, password_hash: string, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { password_hash } }, { session }),
    /**
     * Holds a person until the session ends, while password and second factor are those that were
     * asked for; false once they are others.
     */
    lockLogin: async (
      { _id, password_hash, totp }: Pick<UserDocument, '_id' | 'password_hash' | 'totp'>,
      held_at: string,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id, password_hash, ...(totp === null ? { totp } : {}) };
      const { matchedCount } = await users.updateOne(filter, { $set: { held_at } }, { session });
      return matchedCount === 1;
    },
    /** Notes a sign-in; a second factor that was offered and not taken into use is gone. */
    recordSignIn: (id: string, signed_in_at: string, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { signed_in_at, totp_offered: null } }, { session }),
    ...secondFactors(users),
  };
}

function secondFactors(users: Collection<UserDocument>) {
  return {
    offerTotp: (id: string, totp_offered: Encrypted) =>
      users.updateOne({ _id: id, totp: null }, { $set: { totp_offered } }),
    /** Takes the offered second factor into use; false when another was offered meanwhile. */
    useTotp: async (
      id: string,
      { sealed, step }: SecondFactor,
      recovery_hashes: string[],
      session: ClientSession,
    ): Promise<boolean> => {
      const set = { totp: { sealed, step }, totp_offered: null, recovery_hashes };
      const filter = { _id: id, totp: null, totp_offered: sealed };
      return (await users.updateOne(filter, { $set: set }, { session })).modifiedCount === 1;
    },
    dropTotp: (id: string, session: ClientSession) =>
      users.updateOne(
        { _id: id },
        { $set: { totp: null, totp_offered: null, recovery_hashes: [] } },
        { session },
      ),
    /** Uses the code of a time step; false when it, or a later one, was used before. */
    useStep: async (id: string, step: number): Promise<boolean> => {
      const filter = { _id: id, 'totp.step': { $lt: step } };
      return (await users.updateOne(filter, { $set: { 'totp.step': step } })).modifiedCount === 1;
    },
    setRecovery: (id: string, recovery_hashes: string[], session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { recovery_hashes } }, { session }),
    /** Uses a recovery code up; false when there is none of this hash. */
    useRecovery: async (id: string, hash: string, session: ClientSession): Promise<boolean> => {
      const filter = { _id: id, recovery_hashes: hash };
      const update = { $pull: { recovery_hashes: hash } };
      return (await users.updateOne(filter, update, { session })).modifiedCount === 1;
    },
    /** Users with a sealed second factor, in use or offered, by their ids, after one of them. */
    withTotp: (after: string, limit: number) =>
      users
        .find({
          _id: { $gt: after },
          $or: [{ totp: { $ne: null } }, { totp_offered: { $ne: null } }],
        })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Replaces a sealed secret while it is there unchanged. */
    reencryptTotp: (
      id: string,
      field: 'totp.sealed' | 'totp_offered',
      { before, sealed }: { before: Encrypted; sealed: Encrypted },
    ) => users.updateOne({ _id: id, [field]: before }, { $set: { [field]: sealed } }),
  };
}
