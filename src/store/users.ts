import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Role } from '../domain/merchants/dashboard-role';
import type { Encrypted } from '../encryption/encrypter';
import { readPage } from './list';

export interface UserDocument {
  _id: string;
  account_id: string;
  /** Lower case; unique in its account. */
  email: string;
  role: Role;
  password_hash: string;
  /** Set while somebody else chose the password, which the user must replace. */
  password_expires_at?: string;
  totp: SecondFactor | null;
  totp_offered: Encrypted | null;
  /** Session that may see and confirm the offer, since it gave the password. */
  totp_offer?: { session: string; until: Date };
  /** SHA-256 of unused codes, hex. */
  recovery_hashes: string[];
  passkeys?: Passkey[];
  created_at: string;
  signed_in_at: string | null;
  /** SHA-256 of cookies of the latest browsers that signed in, hex. */
  device_hashes?: string[];
  /** Last write that locked the user. */
  held_at?: string;
}

interface SecondFactor {
  ciphertext: Encrypted;
  /** Latest used: no code works twice. */
  step: number;
}

export interface Passkey {
  id: string;
  /** Chosen by the device, base64url. */
  credential_id: string;
  /** COSE key, base64url. */
  public_key: string;
  /** Counted by the device; 0 where it counts none. */
  counter: number;
  name: string;
  created_at: string;
  last_used_at: string | null;
}

/** @see docs/dashboard.md#passkeys */
export const PASSKEYS_MAX = 10;
const TEAM_MAX = 500;
const OWNERS_MAX = 50;
const DEVICES_MAX = 10;
const MERCHANTS_MAX = 20;

export function totpOwner(user_id: string): string {
  return `user/${user_id}/totp`;
}

export function hasSecondFactor({ totp, passkeys = [] }: Pick<UserDocument, 'totp' | 'passkeys'>) {
  return totp !== null || passkeys.length > 0;
}

const NO_PASSKEY = { 'passkeys.0': { $exists: false } };

export function createUserStore(db: Db) {
  const users = db.collection<UserDocument>('users');
  /** Recovery codes go with the last second factor. */
  const dropRecovery = (_id: string, session: ClientSession) =>
    users.updateOne(
      { _id, totp: null, ...NO_PASSKEY },
      { $set: { recovery_hashes: [] } },
      { session },
    );
  return {
    ensureIndexes: indexBuilder(users, [
      { key: { email: 1, account_id: 1 }, name: 'email_account', unique: true },
      { key: { account_id: 1, created_at: 1 }, name: 'account' },
      {
        ...{ key: { 'passkeys.credential_id': 1 }, name: 'passkey', unique: true },
        partialFilterExpression: { 'passkeys.credential_id': { $exists: true } },
      },
    ]),
    insert: (user: UserDocument, session?: ClientSession) => users.insertOne(user, { session }),
    get: (id: string) => users.findOne({ _id: id }),
    /** Lists one user for each account of the address. */
    byEmail: (email: string) =>
      users.find({ email }).sort({ account_id: 1 }).limit(MERCHANTS_MAX).toArray(),
    forAccount: (account_id: string) =>
      users.find({ account_id }).sort({ created_at: 1 }).limit(TEAM_MAX).toArray(),
    ownerAddresses: async (account_id: string, session: ClientSession): Promise<string[]> => {
      const owners = users.find({ account_id, role: 'owner' }, { session }).limit(OWNERS_MAX);
      return await owners.map(({ email }) => email).toArray();
    },
    teamAddresses: async (account_id: string, session: ClientSession): Promise<string[]> => {
      const team = users.find({ account_id }, { session }).limit(TEAM_MAX);
      return await team.map(({ email }) => email).toArray();
    },
    /** Locks the owners of the account, too, until the session ends. */
    findLocked: async (id: string, account_id: string, now: string, session: ClientSession) => {
      const user = await users.findOne({ _id: id, account_id }, { session });
      if (user === null) return null;
      // Two owners who remove each other have a write conflict here.
      const lockUpdate = { $set: { held_at: now } };
      const owners = await users.updateMany({ account_id, role: 'owner' }, lockUpdate, { session });
      return { user, owners: owners.matchedCount };
    },
    /** Makes a transaction that changes the user at the same moment start again. */
    lock: (id: string, now: string, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { held_at: now } }, { session }),
    setRole: (id: string, role: Role, session: ClientSession) =>
      users.updateOne({ _id: id }, { $set: { role } }, { session }),
    remove: (id: string, session: ClientSession) => users.deleteOne({ _id: id }, { session }),
    setPassword: (id: string, password_hash: string, session: ClientSession) =>
      users.updateOne(
        { _id: id },
        { $set: { password_hash }, $unset: { password_expires_at: '' } },
        { session },
      ),
    setInitialPassword: (
      id: string,
      login: Required<Pick<UserDocument, 'password_hash' | 'password_expires_at'>>,
      session: ClientSession,
    ) => users.findOneAndUpdate({ _id: id }, { $set: login }, { session }),
    /**
     * Locks a user until the session ends.
     * @param passkey id of the passkey that signs in
     * @returns false when password, second factor or passkey have changed
     */
    lockLogin: async (
      user: Pick<UserDocument, '_id' | 'password_hash' | 'totp' | 'passkeys'>,
      { held_at, passkey }: { held_at: string; passkey: string | undefined },
      session: ClientSession,
    ): Promise<boolean> => {
      const { _id, password_hash } = user;
      const filter = {
        ...{ _id, password_hash },
        ...(!hasSecondFactor(user) && { totp: null, ...NO_PASSKEY }),
        ...(passkey !== undefined && { 'passkeys.id': passkey }),
      };
      const { matchedCount } = await users.updateOne(filter, { $set: { held_at } }, { session });
      return matchedCount === 1;
    },
    /** Drops an unconfirmed second factor, too. */
    recordSignIn: (
      id: string,
      { signed_in_at, device }: { signed_in_at: string; device: string },
      session: ClientSession,
    ) => {
      const others = {
        $filter: { input: { $ifNull: ['$device_hashes', []] }, cond: { $ne: ['$$this', device] } },
      };
      const device_hashes = { $slice: [{ $concatArrays: [others, [device]] }, -DEVICES_MAX] };
      const set = { signed_in_at, totp_offered: null, device_hashes };
      return users.updateOne({ _id: id }, [{ $set: set }], { session });
    },
    offerTotp: (id: string, offer: Required<Pick<UserDocument, 'totp_offered' | 'totp_offer'>>) =>
      users.updateOne({ _id: id, totp: null }, { $set: offer }),
    /** @returns false when another factor was offered meanwhile, or the offer has ended */
    useTotp: async (
      id: string,
      { ciphertext, step, ...offer }: SecondFactor & { session: string; now: Date },
      recovery_hashes: string[],
      session: ClientSession,
    ): Promise<boolean> => {
      const set = { totp: { ciphertext, step }, totp_offered: null, recovery_hashes };
      const filter = {
        ...{ _id: id, totp: null, totp_offered: ciphertext },
        ...{ 'totp_offer.session': offer.session, 'totp_offer.until': { $gt: offer.now } },
      };
      return (await users.updateOne(filter, { $set: set }, { session })).modifiedCount === 1;
    },
    dropTotp: async (id: string, session: ClientSession): Promise<void> => {
      await users.updateOne({ _id: id }, { $set: { totp: null, totp_offered: null } }, { session });
      await dropRecovery(id, session);
    },
    byPasskey: (credential_id: string) =>
      users.findOne({ 'passkeys.credential_id': credential_id }),
    /**
     * @param recovery_hashes present if it is the first factor
     * @returns false when it is stored, one too many, or not the first factor any more
     */
    addPasskey: async (
      id: string,
      { passkey, recovery_hashes }: { passkey: Passkey; recovery_hashes: string[] | undefined },
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = {
        ...{ _id: id, [`passkeys.${PASSKEYS_MAX - 1}`]: { $exists: false } },
        'passkeys.credential_id': { $ne: passkey.credential_id },
        ...(recovery_hashes && { totp: null, ...NO_PASSKEY }),
      };
      const update = {
        $push: { passkeys: passkey },
        ...(recovery_hashes && { $set: { recovery_hashes } }),
      };
      return (await users.updateOne(filter, update, { session })).modifiedCount === 1;
    },
    /** @returns false when the passkey was used or removed meanwhile */
    usePasskey: async (
      id: string,
      { id: passkey, counter }: Pick<Passkey, 'id' | 'counter'>,
      next: Pick<Passkey, 'counter' | 'last_used_at'>,
    ): Promise<boolean> => {
      const filter = { _id: id, passkeys: { $elemMatch: { id: passkey, counter } } };
      const set = {
        'passkeys.$.counter': next.counter,
        'passkeys.$.last_used_at': next.last_used_at,
      };
      return (await users.updateOne(filter, { $set: set })).matchedCount === 1;
    },
    /** @returns the user as before; null without the passkey */
    removePasskey: async (id: string, passkey: string, session: ClientSession) => {
      const user = await users.findOneAndUpdate(
        { _id: id, 'passkeys.id': passkey },
        { $pull: { passkeys: { id: passkey } } },
        { returnDocument: 'before', session },
      );
      await dropRecovery(id, session);
      return user;
    },
    /** @returns false when the step, or a later one, was used before */
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
      field: 'totp.ciphertext' | 'totp_offered',
      { before, ciphertext }: { before: Encrypted; ciphertext: Encrypted },
    ) => users.updateOne({ _id: id, [field]: before }, { $set: { [field]: ciphertext } }),
  };
}
