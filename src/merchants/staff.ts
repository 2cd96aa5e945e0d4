import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { MongoClient } from 'mongodb';
import type { Role } from '../domain/dashboard-role';
import { inTransaction, isDuplicateKey } from '../mongo';
import type { Stores } from '../store';
import type { AccountDocument } from '../store/accounts';
import { type Audit, auditBy } from '../store/audit';
import type { InvitationDocument } from '../store/invitations';
import type { UserDocument } from '../store/users';

/** Time in which an invitation can be accepted. @see docs/dashboard.md#invitations */
const INVITED_MS = 3 * 86_400_000;

export interface StaffDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'users' | 'invitations' | 'sessions' | 'auditLog'>;
  audit: Audit;
  now: () => Date;
}

/** Hashes the token of an invitation's link for storage, as hex SHA-256. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Makes the first person of an account. */
export function ownerOf(
  { _id: account_id, dashboard, created_at }: AccountDocument,
  password_hash: string,
): UserDocument {
  return newUser({ account_id, email: dashboard.email, role: 'owner' }, password_hash, created_at);
}

function newUser(
  of: Pick<UserDocument, 'account_id' | 'email' | 'role'>,
  password_hash: string,
  created_at: string,
): UserDocument {
  return {
    _id: `user_${randomUUID()}`,
    ...of,
    password_hash,
    totp: null,
    totp_offered: null,
    recovery_hashes: [],
    created_at,
    signed_in_at: null,
  };
}

/**
 * Invites a person; an invitation of the same address is replaced.
 * @returns token of the link, which is not stored and not shown again
 */
export async function invite(
  { mongo, stores, audit, now }: StaffDeps,
  { account_id, email, role }: { account_id: string; email: string; role: Role },
): Promise<{ token: string; expires_at: Date }> {
  const token = randomBytes(32).toString('base64url');
  const at = now();
  const invitation: InvitationDocument = {
    _id: hashToken(token),
    account_id,
    email: email.toLowerCase(),
    role,
    created_at: at.toISOString(),
    expires_at: new Date(at.getTime() + INVITED_MS),
  };
  await inTransaction(mongo, async (session) => {
    await stores.invitations.put(invitation, session);
    const change = { act: 'user.invited', account_id, livemode: null, target: invitation.email };
    await audit({ ...change, act: 'user.invited', after: { role } }, session);
  });
  return { token, expires_at: invitation.expires_at };
}

export async function withdrawInvitation(
  { mongo, stores, audit }: StaffDeps,
  account_id: string,
  email: string,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    const gone = await stores.invitations.withdraw(account_id, email, session);
    if (gone === null) return;
    const change = { account_id, livemode: null, target: email, before: { role: gone.role } };
    await audit({ act: 'user.invitation_withdrawn', ...change }, session);
  });
}

/**
 * Makes the invited person a user, once for each link.
 * @returns null when the link is used, withdrawn or too old; `email_taken` when the address has a
 *   login already, of whatever account
 */
export async function join(
  { mongo, stores, now }: Omit<StaffDeps, 'audit'>,
  token: string,
  password_hash: string,
): Promise<UserDocument | 'email_taken' | null> {
  try {
    return await inTransaction(mongo, async (session) => {
      const invitation = await stores.invitations.take(hashToken(token), now(), session);
      if (invitation === null) return null;
      const { account_id, email, role } = invitation;
      const user = newUser({ account_id, email, role }, password_hash, now().toISOString());
      await stores.users.insert(user, session);
      const audit = auditBy({ stores, now }, { door: 'dashboard', user_id: user._id, email });
      const change = { account_id, livemode: null, target: user._id, after: { email, role } };
      await audit({ act: 'user.joined', ...change }, session);
      return user;
    });
  } catch (error) {
    if (isDuplicateKey(error, 'email')) return 'email_taken';
    throw error;
  }
}

/** Result of a change of staff: an account always keeps an owner. */
export type StaffChange = 'done' | 'not_found' | 'last_owner';

/** Changes the role from the person's next request on. */
export async function changeRole(
  { mongo, stores, audit, now }: StaffDeps,
  { id, account_id }: { id: string; account_id: string },
  role: Role,
): Promise<StaffChange> {
  return await inTransaction(mongo, async (session) => {
    const at = now().toISOString();
    const held = await stores.users.held(id, account_id, at, session);
    if (held === null) return 'not_found';
    const { user, owners } = held;
    if (user.role === 'owner' && role !== 'owner' && owners < 2) return 'last_owner';
    await stores.users.setRole(id, role, session);
    const { role: was, email } = user;
    const change = { account_id, livemode: null, target: id, before: { email, role: was } };
    await audit({ act: 'user.role_changed', ...change, after: { email, role } }, session);
    return 'done';
  });
}

/** Removes a person and ends their sessions. */
export async function removeUser(
  { mongo, stores, audit, now }: StaffDeps,
  { id, account_id }: { id: string; account_id: string },
): Promise<StaffChange> {
  return await inTransaction(mongo, async (session) => {
    const at = now().toISOString();
    const held = await stores.users.held(id, account_id, at, session);
    if (held === null) return 'not_found';
    const { user, owners } = held;
    if (user.role === 'owner' && owners < 2) return 'last_owner';
    await stores.users.remove(id, session);
    await stores.sessions.endAll(id, session);
    const { email, role } = user;
    const change = { account_id, livemode: null, target: id, before: { email, role } };
    await audit({ act: 'user.removed', ...change }, session);
    return 'done';
  });
}
