import { randomBytes } from 'node:crypto';
import { inTransaction } from '../../base/mongo';
import { hashPassword } from '../../encryption/password';
import type { UserDocument } from '../../store/users';
import type { TeamDeps } from './members';

type UserRef = Pick<UserDocument, '_id' | 'account_id'>;

/** Sets a new password and ends the other sessions of the user. */
export async function changePassword(
  { mongo, stores, audit }: TeamDeps,
  { _id, account_id }: UserRef,
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
  { mongo, stores, audit }: TeamDeps,
  { _id, account_id }: UserRef,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    await stores.sessions.endAll(_id, session);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.signed_out_everywhere', ...change }, session);
  });
}

/**
 * Resets the password of a user, ends the sessions, and removes a lost second factor.
 * @returns the new password, shown only once; null when there is no such user
 */
export async function resetPassword(
  { mongo, stores, audit }: TeamDeps,
  email: string,
  { dropSecondFactor }: { dropSecondFactor: boolean },
): Promise<string | null> {
  const user = await stores.users.byEmail(email.toLowerCase());
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
