import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../../base/mongo';
import { ServiceError } from '../../../domain/errors';
import { ROLES, type Role } from '../../../domain/merchants/dashboard-role';
import { hashPassword } from '../../../encryption/password';
import type { AccountDocument } from '../../../store/accounts';
import type { InvitationDocument } from '../../../store/invitations';
import { hasSecondFactor, type UserDocument } from '../../../store/users';

import type { ServiceDeps, WriteDeps } from '../../access';
import { auditAsUser, type Origin } from '../../operators/audit/log';
import { addMail, notifyUser } from '../mail/outbox';

const DAY_MS = 86_400_000;
/** @see docs/dashboard.md#invitations */
const INVITATION_MS = 3 * DAY_MS;
const PENDING_MAX = 50;
const INVITATIONS_A_DAY = 100;

export type UserRef = Pick<UserDocument, '_id' | 'account_id' | 'email'>;

export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export function buildOwner(
  { _id: account_id, dashboard, created_at }: AccountDocument,
  { password_hash, ...login }: Pick<UserDocument, 'password_hash' | 'password_expires_at'>,
): UserDocument {
  const fields = { account_id, email: dashboard.email, role: 'owner' } as const;
  return { ...buildUser(fields, password_hash, created_at), ...login };
}

export type Invitation = Pick<InvitationDocument, 'email' | 'role' | 'expires_at'>;

type TeamReadDeps = Pick<ServiceDeps, 'stores' | 'now'>;

/** Members are oldest first; invitations by role, owners first. */
export async function listTeam({ stores, now }: TeamReadDeps, account_id: string) {
  const [users, invitations] = await Promise.all([
    stores.users.forAccount(account_id),
    stores.invitations.forAccount(account_id, now()),
  ]);
  const byRole = ROLES.flatMap((role) => invitations.filter((each) => each.role === role));
  return { members: users.map(presentMember), invitations: byRole };
}

export async function getMember({ stores }: Pick<TeamReadDeps, 'stores'>, id: string) {
  const user = await stores.users.get(id);
  return user && presentMember(user);
}

export type TeamMember = ReturnType<typeof presentMember>;

function presentMember(user: UserDocument) {
  const { _id: id, email, role, totp, recovery_hashes, created_at, signed_in_at } = user;
  const { passkeys = [] } = user;
  return {
    ...{ id, email, role, created_at, signed_in_at },
    has_second_factor: hasSecondFactor(user),
    has_app: totp !== null,
    recovery_codes: recovery_hashes.length,
    passkeys: passkeys.map(({ id: passkey, name, ...times }) => {
      return { id: passkey, name, created_at: times.created_at, last_used_at: times.last_used_at };
    }),
  };
}

/** @returns false when there is no such passkey */
export async function dropPasskey(
  { stores, audit, now }: Pick<WriteDeps, 'stores' | 'audit' | 'now'>,
  { _id, account_id, email }: UserRef,
  id: string,
  session: ClientSession,
): Promise<boolean> {
  const user = await stores.users.removePasskey(_id, id, session);
  const passkey = user?.passkeys?.find((each) => each.id === id);
  if (passkey === undefined) return false;
  const before = { passkey: id, name: passkey.name };
  const change = { account_id, livemode: null, target: _id, before };
  await audit({ act: 'passkey.removed', ...change }, session);
  const subject = { kind: 'passkey_removed', name: passkey.name } as const;
  await notifyUser({ stores, now }, { account_id, email }, subject, session);
  return true;
}

/** @returns null when the link has expired */
export async function findInvitation({ stores, now }: TeamReadDeps, token: string) {
  const invitation = await stores.invitations.find(hashToken(token), now());
  if (invitation === null) return null;
  const account = await stores.accounts.get(invitation.account_id);
  return { email: invitation.email, merchant: account?.name };
}

function buildUser(
  fields: Pick<UserDocument, 'account_id' | 'email' | 'role'>,
  password_hash: string,
  created_at: string,
): UserDocument {
  return {
    _id: `user_${randomUUID()}`,
    ...fields,
    password_hash,
    totp: null,
    totp_offered: null,
    recovery_hashes: [],
    created_at,
    signed_in_at: null,
  };
}

type NewInvitation = Pick<InvitationDocument, 'account_id' | 'email' | 'role' | 'invited_by'>;

/**
 * Replaces an earlier invitation of the address.
 * @returns token of the link, which is not stored and not shown again; `is_mailed` when another
 * link goes to the address by mail, which is at most once a day
 * @throws ServiceError `too_many_invitations` of users; nothing was done
 */
export async function invite(
  { mongo, stores, audit, now }: WriteDeps,
  { account_id, email, role, invited_by }: NewInvitation,
): Promise<{ token: string; expires_at: Date; is_mailed: boolean }> {
  const token = randomBytes(32).toString('base64url');
  const at = now();
  const invitation: InvitationDocument = {
    _id: hashToken(token),
    account_id,
    email: email.toLowerCase(),
    role,
    invited_by,
    created_at: at.toISOString(),
    expires_at: new Date(at.getTime() + INVITATION_MS),
  };
  const is_mailed = await inTransaction(mongo, async (session) => {
    const since = new Date(at.getTime() - DAY_MS).toISOString();
    const filter = { account_id, act: 'user.invited', since, limit: INVITATIONS_A_DAY } as const;
    // Withdrawn ones count, too.
    const lines = await stores.auditLog.list(filter, session);
    if (invited_by !== null) {
      const { countOthers } = stores.invitations;
      const others = await countOthers(account_id, invitation.email, at, session);
      if (others >= PENDING_MAX) throw refuseInvitation(`${PENDING_MAX} are pending. Withdraw one`);
      if (lines.length >= INVITATIONS_A_DAY) {
        throw refuseInvitation(`${INVITATIONS_A_DAY} were made in 24 hours. Try again later`);
      }
    }
    await stores.invitations.put(invitation, session);
    const change = { account_id, livemode: null, target: invitation.email, after: { role } };
    await audit({ act: 'user.invited', ...change }, session);
    const { _id, email: to, expires_at: ends_at } = invitation;
    const subject = { kind: 'invitation', invitation: _id, role } as const;
    if (lines.some(({ target }) => target === to)) return false;
    return await addMail({ stores, now }, { account_id, to: [to], subject, ends_at }, session);
  });
  return { token, expires_at: invitation.expires_at, is_mailed };
}

function refuseInvitation(reason: string): ServiceError {
  return new ServiceError('too_many_invitations', `Nobody was invited: ${reason}.`);
}

export async function withdrawInvitation(
  { mongo, stores, audit }: WriteDeps,
  account_id: string,
  email: string,
): Promise<void> {
  await inTransaction(mongo, (session) =>
    withdraw({ stores, audit }, { account_id, email }, session),
  );
}

async function withdraw(
  { stores, audit }: Pick<WriteDeps, 'stores' | 'audit'>,
  { account_id, email }: Pick<InvitationDocument, 'account_id' | 'email'>,
  session: ClientSession,
): Promise<void> {
  const invitation = await stores.invitations.withdraw(account_id, email, session);
  if (invitation === null) return;
  const change = { account_id, livemode: null, target: email, before: { role: invitation.role } };
  await audit({ act: 'user.invitation_withdrawn', ...change }, session);
}

/** The user may still have the links. */
export async function withdrawSentInvitations(
  deps: Pick<WriteDeps, 'stores' | 'audit'>,
  { _id, account_id }: Pick<UserDocument, '_id' | 'account_id'>,
  session: ClientSession,
): Promise<void> {
  for (const invitation of await deps.stores.invitations.by(account_id, _id, session)) {
    await withdraw(deps, invitation, session);
  }
}

/**
 * @returns null when the link is used, withdrawn or too old; `is_member` when the account has a
 * user of this address
 */
export async function acceptInvitation(
  { mongo, stores, now }: Omit<WriteDeps, 'audit'>,
  token: string,
  password_hash: string,
  origin?: Origin,
): Promise<UserDocument | 'is_member' | null> {
  try {
    return await inTransaction(mongo, async (session) => {
      const invitation = await stores.invitations.consume(hashToken(token), now(), session);
      if (invitation === null) return null;
      const { account_id, email, role } = invitation;
      const user = buildUser({ account_id, email, role }, password_hash, now().toISOString());
      await stores.users.insert(user, session);
      const audit = auditAsUser({ stores, now }, user, origin);
      const change = { account_id, livemode: null, target: user._id, after: { email, role } };
      await audit({ act: 'user.joined', ...change }, session);
      return user;
    });
  } catch (error) {
    if (isDuplicateKey(error, 'email_account')) return 'is_member';
    throw error;
  }
}

/** An account always has an owner. */
export type TeamChange = 'done' | 'not_found' | 'last_owner';

/** Takes effect at the user's next request. @param role null removes the user */
export async function changeMember(
  { mongo, stores, audit, now }: WriteDeps,
  { id, account_id }: { id: string; account_id: string },
  role: Role | null,
): Promise<TeamChange> {
  return await inTransaction(mongo, async (session) => {
    const membership = await stores.users.findLocked(id, account_id, now().toISOString(), session);
    if (membership === null) return 'not_found';
    const { user, owners } = membership;
    if (user.role === 'owner' && role !== 'owner' && owners < 2) return 'last_owner';
    const { email } = user;
    const change = { account_id, livemode: null, target: id, before: { email, role: user.role } };
    await withdrawSentInvitations({ stores, audit }, user, session);
    if (role === null) {
      await stores.users.remove(id, session);
      await stores.sessions.endAll(id, session);
      await audit({ act: 'user.removed', ...change }, session);
    } else {
      await stores.users.setRole(id, role, session);
      await audit({ act: 'user.role_changed', ...change, after: { email, role } }, session);
    }
    return 'done';
  });
}

/** @see docs/dashboard.md#sign-in */
const INITIAL_PASSWORD_MS = 24 * 3_600_000;

/** The user must replace it at the first sign-in. */
export async function createInitialPassword(now: Date) {
  const password = randomBytes(16).toString('hex');
  return {
    password,
    password_hash: await hashPassword(password),
    password_expires_at: new Date(now.getTime() + INITIAL_PASSWORD_MS).toISOString(),
  };
}

type Login = Pick<UserDocument, 'password_expires_at'>;

export function mustReplacePassword({ password_expires_at }: Login): boolean {
  return password_expires_at !== undefined;
}

export function isPasswordExpired({ password_expires_at }: Login, now: Date): boolean {
  return password_expires_at !== undefined && password_expires_at <= now.toISOString();
}
