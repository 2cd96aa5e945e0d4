import { randomBytes } from 'node:crypto';
import { hashPassword } from '../keys/password';
import { inTransaction, isDuplicateKey } from '../mongo';
import type { Stores } from '../store';
import type { UserDocument } from '../store/users';
import { ownerOf, type StaffDeps } from './staff';

type Person = Pick<UserDocument, '_id' | 'account_id'>;

/** Finds who signs in by an address; a login from before there were users becomes one. */
export async function findLogin(
  stores: Pick<Stores, 'users' | 'accounts'>,
  email: string,
): Promise<UserDocument | null> {
  // Both are asked for in any case, so that the time tells nothing.
  const [user, account] = await Promise.all([
    stores.users.byEmail(email),
    stores.accounts.byLogin(email),
  ]);
  if (user !== null) return user;
  if (!account?.dashboard.password_hash) return null;
  // Once there are people, that login is no login any more.
  const people = await stores.users.forAccount(account._id);
  if (people.length > 0) return people.find((person) => person.email === email) ?? null;
  const owner = ownerOf(account, account.dashboard.password_hash);
  try {
    await stores.users.insert(owner);
    return owner;
  } catch (error) {
    if (!isDuplicateKey(error, 'email')) throw error;
    return await stores.users.byEmail(email);
  }
}

/** Sets a new password and ends the person's other sessions. */
export async function changePassword(
  { mongo, stores, audit }: StaffDeps,
  { _id, account_id }: Person,
  { password_hash, keep }: { password_hash: string; keep: string },
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    await stores.users.setPassword(_id, password_hash, session);
    await stores.sessions.endAll(_id, session, keep);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.password_changed', ...change }, session);
  });
}

export async function signOutEverywhere(
  { mongo, stores, audit }: StaffDeps,
  { _id, account_id }: Person,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    await stores.sessions.endAll(_id, session);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.signed_out_everywhere', ...change }, session);
  });
}

/**
 * Gives a person who is locked out a new password, ends their sessions, and takes the second factor
 * away if that is lost, too.
 * @returns password, shown this once; null when there is no such person
 */
export async function resetPassword(
  {
    mongo,
    stores,
    audit,
  }: Omit<StaffDeps, 'stores'> & {
    stores: StaffDeps['stores'] & Pick<Stores, 'accounts'>;
  },
  email: string,
  { dropSecondFactor }: { dropSecondFactor: boolean },
): Promise<string | null> {
  const user = await findLogin(stores, email.toLowerCase());
  if (user === null) return null;
  const password = randomBytes(16).toString('hex');
  const password_hash = await hashPassword(password);
  await inTransaction(mongo, async (session) => {
    await stores.users.setPassword(user._id, password_hash, session);
    await stores.sessions.endAll(user._id, session);
    const { _id: target, account_id } = user;
    const change = { account_id, livemode: null, target, after: { email: user.email } };
    await audit({ act: 'user.password_reset', ...change }, session);
    if (!dropSecondFactor || user.totp === null) return;
    await stores.users.dropTotp(target, session);
    await audit({ act: 'user.second_factor_off', ...change }, session);
  });
  return password;
}
