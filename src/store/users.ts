import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Role } from '../domain/account/dashboard-role';
import type { Encrypted } from '../encryption/encrypter';
import { readPage } from './page';

export interface UserDocument {
  _id: string;
  account_id: string;
  /** In lower case; unique over all accounts. */
  email: string;
  role: Role;
  password_hash: string;
  totp: SecondFactor | null;
  totp_offered: Encrypted | null;
  /** SHA-256 of the unused recovery codes, hex. */
  recovery_hashes: string[];
  created_at: string;
  signed_in_at: string | null;
  /** Last write that locked the user, by a change of the team or a sign-in. */
  held_at?: string;
}

interface SecondFactor {
  sealed: Encrypted;
  /** Latest used time step: no code works twice. */
  step: number;
}

const TEAM_MAX = 500;

export function totpOwner(user_id: string): string {
  return `user/${user_id}/totp`;
}

export function createUserStore(db: Db) {
  const users = db.collection<UserDocument>('users');
  return {
    ensureIndexes: indexBuilder(users, [
      { key: { email: 1 }, name: 'email', unique: true },
      { key: { account_id: 1, created_at: 1 }, name: 'account' },
    ]),
    insert: (user: UserDocument, session?: ClientSession) => users.insertOne(user, { session }),
    get: (id: string) => users.findOne({ _id: id }),
    byEmail: (email: string) => users.findOne({ email }),
    forAccount: (account_id: string) =>
      users.find({ account_id }).sort({ created_at: 1 }).limit(TEAM_MAX).toArray(),
    /** Finds a team member, and locks the owners of the account until the session ends. */
    findLocked: async (id: string, account_id: string, now: string, session: ClientSession) => {
      const user = await users.findOne({ _id: id, account_id }, { session });
      if (user === null) return null;
      // Two owners who remove each other have a write conflict here.
      const lockUpdate = { $set: { held_at: now } };
      const owners = await users.updateMany({ account_id, role: 'owner' }, lockUpdate, { session });
      return { user, owners: owners.matchedCount };
    },
    setRole: (id: string, role: Role, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { role } }, { session }),
    remove: (id: string, session: ClientSession) => users.deleteOne({ _id: id }, { session }),
    setPassword: (id: string, password_hash: string, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { password_hash } }, { session }),
    /** Locks a user until the session ends; false when password or second factor have changed. */
    lockLogin: async (
      { _id, password_hash, totp }: Pick<UserDocument, '_id' | 'password_hash' | 'totp'>,
      held_at: string,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id, password_hash, ...(totp === null ? { totp } : {}) };
      const { matchedCount } = await users.updateOne(filter, { $set: { held_at } }, { session });
      return matchedCount === 1;
    },
    /** Records a sign-in, and drops an unconfirmed second factor. */
    recordSignIn: (id: string, signed_in_at: string, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { signed_in_at, totp_offered: null } }, { session }),
    offerTotp: (id: string, totp_offered: Encrypted) =>
      users.updateOne({ _id: id, totp: null }, { $set: { totp_offered } }),
    /** Confirms the offered second factor; false when another was offered meanwhile. */
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
    /** Uses a time step; false when it, or a later one, was used before. */
    useStep: async (id: string, step: number): Promise<boolean> => {
      const filter = { _id: id, 'totp.step': { $lt: step } };
      return (await users.updateOne(filter, { $set: { 'totp.step': step } })).modifiedCount === 1;
    },
    setRecovery: (id: string, recovery_hashes: string[], session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { recovery_hashes } }, { session }),
    useRecovery: async (id: string, hash: string, session: ClientSession): Promise<boolean> => {
      const filter = { _id: id, recovery_hashes: hash };
      const update = { $pull: { recovery_hashes: hash } };
      return (await users.updateOne(filter, update, { session })).modifiedCount === 1;
    },
    withTotp: (after: string, limit: number) =>
      readPage<UserDocument>(users, after, limit, {
        $or: [{ totp: { $ne: null } }, { totp_offered: { $ne: null } }],
      }),
    reencryptTotp: (
      id: string,
      field: 'totp.sealed' | 'totp_offered',
      { before, sealed }: { before: Encrypted; sealed: Encrypted },
    ) => users.updateOne({ _id: id, [field]: before }, { $set: { [field]: sealed } }),
  };
}
