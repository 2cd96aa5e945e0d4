import { randomBytes } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { inTransaction } from '../../../base/mongo';
import { toCustomerNetwork } from '../../../base/networks';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import type { AccountDocument } from '../../../store/accounts';
import type { Flash, SessionDocument, SessionStore } from '../../../store/sessions';
import type { UserDocument } from '../../../store/users';
import type { ServiceDeps, WriteDeps } from '../../access';
import { auditAsUser, type Origin } from '../../operators/audit/log';
import { notifyUser } from '../mail/outbox';
import {
  createInitialPassword,
  dropPasskey,
  hashToken,
  type UserRef,
  withdrawSentInvitations,
} from './members';
import { clearUser } from './sign-in';

export type { Flash } from '../../../store/sessions';
export { hasSecondFactor, type UserDocument } from '../../../store/users';

/** @see docs/dashboard.md#sessions */
const IDLE_MS = 2 * 3_600_000;
/** @see docs/dashboard.md#sessions */
const SESSION_MS = 12 * 3_600_000;
/** Time limit for the second factor. */
const MFA_SESSION_MS = 10 * 60_000;
/** Precision of the idle limit: not every page view writes. */
const TOUCH_MS = 60_000;

type SessionDeps = Pick<ServiceDeps, 'mongo' | 'stores' | 'now'>;

export interface Visit {
  session: SessionDocument;
  user: UserDocument;
  account: AccountDocument;
}

/** Renews the idle limit. */
export async function readSession({ stores, now }: SessionDeps, secret: string) {
  const session = await stores.sessions.find(hashToken(secret), now());
  if (session === null) return null;
  const [user, account] = await Promise.all([
    stores.users.get(session.user_id),
    stores.accounts.get(session.account_id),
  ]);
  if (user === null || account === null || user.account_id !== account._id) return null;
  const { _id, stage, seen_at, expires_at, ends_at } = session;
  const at = now();
  const next = new Date(Math.min(at.getTime() + IDLE_MS, ends_at.getTime()));
  const isRecent = at.getTime() - seen_at.getTime() < TOUCH_MS;
  const isRenewed = isRecent && next.getTime() - expires_at.getTime() < TOUCH_MS;
  if (stage === 'whole' && !isRenewed) {
    await stores.sessions.touch(_id, { expires_at: next, seen_at: at });
  }
  return { session, user, account };
}

export type SignInProof =
  | { by: 'password' | 'password, code' | 'invitation' }
  | { by: 'passkey' | 'password, passkey'; passkey: string };

interface NewSession {
  proof: SignInProof;
  /** `password` waits for the second factor; `whole` is signed in. */
  stage: SessionDocument['stage'];
  /** Hash of the device cookie. */
  device: string;
  /** Session cookie, which an attacker may have set. */
  oldSecret: string | null;
  /** Shown in the list of sessions. */
  browser?: string;
  origin?: Origin;
}

/**
 * Replaces the browser's session. A password change ends sessions, so the same transaction checks
 * that what was verified is still current.
 * @returns secret of the new cookie; null when password, second factor or passkey have changed
 */
export async function startSession(
  { stores, mongo, now }: SessionDeps,
  user: UserDocument,
  { stage, device, oldSecret, proof, browser, origin }: NewSession,
): Promise<string | null> {
  const { _id, account_id } = user;
  if (oldSecret !== null) await endSession({ stores }, oldSecret);
  return await inTransaction(mongo, async (session) => {
    const at = now();
    const { passkey } = { passkey: undefined, ...proof };
    const lock = { held_at: at.toISOString(), passkey };
    if (!(await stores.users.lockLogin(user, lock, session))) return null;
    if (stage === 'whole') {
      await stores.users.recordSignIn(_id, { signed_in_at: at.toISOString(), device }, session);
      const audit = auditAsUser({ stores, now }, user, origin);
      const change = { account_id, livemode: null, target: _id, after: proof };
      await audit({ act: 'user.signed_in', ...change }, session);
      const isKnown = user.device_hashes?.includes(device) === true;
      if (!isKnown && proof.by !== 'invitation') {
        const network = toCustomerNetwork(origin?.address ?? 'unknown');
        const from = { browser: browser ?? UNKNOWN_BROWSER, network };
        const subject = { kind: 'signed_in', ...from } as const;
        await notifyUser({ stores, now }, user, subject, session);
      }
    }
    const facts = { browser, address: origin?.address };
    return await insertSession(stores.sessions, user, stage, at, facts, session);
  });
}

export async function endSession({ stores }: Pick<SessionDeps, 'stores'>, secret: string) {
  await stores.sessions.end(hashToken(secret));
}

/** The next page shows it once. */
export async function setFlash(
  { stores }: Pick<SessionDeps, 'stores'>,
  session: SessionDocument,
  flash: Flash | null,
): Promise<void> {
  await stores.sessions.setFlash(session._id, flash);
}

/**
 * Uses a new id, which prevents session fixation.
 * @returns secret for the cookie; only its hash is stored
 */
export async function insertSession(
  sessions: Pick<SessionStore, 'insert'>,
  user: Pick<UserDocument, '_id' | 'account_id'>,
  stage: SessionDocument['stage'],
  now: Date,
  facts: { browser?: string | undefined; address?: string | undefined } = {},
  transaction?: ClientSession,
): Promise<string> {
  const secret = randomBytes(32).toString('base64url');
  const [idle, longest] =
    stage === 'whole' ? [IDLE_MS, SESSION_MS] : [MFA_SESSION_MS, MFA_SESSION_MS];
  const session: SessionDocument = {
    _id: hashToken(secret),
    user_id: user._id,
    account_id: user.account_id,
    stage,
    created_at: now,
    seen_at: now,
    ...omitUndefined(facts),
    expires_at: new Date(now.getTime() + idle),
    ends_at: new Date(now.getTime() + longest),
    flash: null,
  };
  await sessions.insert(session, transaction);
  return secret;
}

/**
 * Ends the user's other sessions, too.
 * @returns false when a reset has ended the session meanwhile: its password stays
 */
export async function changePassword(
  { mongo, stores, audit, now }: WriteDeps,
  user: UserRef,
  { password_hash, keep }: { password_hash: string; keep: string },
): Promise<boolean> {
  const { _id, account_id } = user;
  return await inTransaction(mongo, async (session) => {
    if ((await stores.sessions.find(keep, now(), session)) === null) return false;
    await stores.users.setPassword(_id, password_hash, session);
    await stores.sessions.endAll(_id, session, keep);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.password_changed', ...change }, session);
    await notifyUser({ stores, now }, user, { kind: 'password_changed' }, session);
    return true;
  });
}

export async function signOutEverywhere(
  { mongo, stores, audit, now }: WriteDeps,
  { _id, account_id }: Pick<UserRef, '_id' | 'account_id'>,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    // A second factor that one of the sessions adds meanwhile has a write conflict here.
    await stores.users.lock(_id, now().toISOString(), session);
    await stores.sessions.endAll(_id, session);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.signed_out_everywhere', ...change }, session);
  });
}

interface PasswordReset {
  email: string;
  /** Required where several merchants have a user of the address. */
  account_id: string | undefined;
  dropSecondFactor: boolean;
}

/**
 * Ends the sessions, and removes a lost second factor, too.
 * @returns the new password, shown only once; null when there is no such user
 * @throws ServiceError `account_required` when several merchants have a user of the address
 */
export async function resetPassword(
  { mongo, stores, audit, now }: WriteDeps,
  { email, account_id, dropSecondFactor }: PasswordReset,
): Promise<string | null> {
  const users = (await stores.users.byEmail(email.toLowerCase())).filter(
    (each) => account_id === undefined || each.account_id === account_id,
  );
  const [found] = users;
  if (found === undefined) return null;
  if (users.length > 1) {
    const accounts = users.map((each) => each.account_id).join(', ');
    throw new ServiceError('account_required', `Name the account with --account: ${accounts}.`);
  }
  const { password, ...login } = await createInitialPassword(now());
  const reset = await inTransaction(mongo, async (session) => {
    // The user may have another second factor than before, or be removed.
    const user = await stores.users.setInitialPassword(found._id, login, session);
    if (user === null) return null;
    await stores.sessions.endAll(user._id, session);
    await withdrawSentInvitations({ stores, audit }, user, session);
    const { _id: target } = user;
    const change = {
      ...{ account_id: user.account_id, livemode: null, target },
      after: { email: user.email },
    };
    await audit({ act: 'user.password_reset', ...change }, session);
    if (!dropSecondFactor) return user;
    for (const { id } of user.passkeys ?? [])
      await dropPasskey({ stores, audit, now }, user, id, session);
    if (user.totp === null) return user;
    await stores.users.dropTotp(target, session);
    await audit({ act: 'user.second_factor_off', ...change }, session);
    await notifyUser({ stores, now }, user, { kind: 'second_factor_off' }, session);
    return user;
  });
  if (reset === null) return null;
  await clearUser(stores.throttles, reset, now());
  return password;
}

/** Last used first. */
export async function listSessions(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  user_id: string,
) {
  return (await stores.sessions.listSignedIn(user_id, now())).map(presentSession);
}

export const UNKNOWN_BROWSER = 'Unknown browser';

export type ListedSession = ReturnType<typeof presentSession>;

function presentSession(session: SessionDocument) {
  const { _id: id, created_at, seen_at, browser, address } = session;
  return {
    ...{ id, created_at, seen_at, browser: browser ?? UNKNOWN_BROWSER },
    network: address === undefined ? null : toCustomerNetwork(address),
  };
}

/** @returns false when there is no such session */
export async function endOtherSession(
  { mongo, stores, audit, now }: WriteDeps,
  { _id: user_id, account_id }: Pick<UserRef, '_id' | 'account_id'>,
  id: string,
): Promise<boolean> {
  return await inTransaction(mongo, async (session) => {
    // As in `signOutEverywhere`.
    await stores.users.lock(user_id, now().toISOString(), session);
    const ended = await stores.sessions.endOwn(id, user_id, session);
    if (ended === null) return false;
    const { browser, network } = presentSession(ended);
    const before = { session: id.slice(0, SESSION_PREFIX), browser, network };
    const change = { account_id, livemode: null, target: user_id, before };
    await audit({ act: 'user.session_ended', ...change }, session);
    return true;
  });
}

/** Names a session in logs and the audit log. */
export const SESSION_PREFIX = 12;

/** @returns how many have ended */
export async function endOtherSessions(
  { mongo, stores, audit, now }: WriteDeps,
  { _id: user_id, account_id }: Pick<UserRef, '_id' | 'account_id'>,
  keep: string,
): Promise<number> {
  return await inTransaction(mongo, async (session) => {
    // As in `signOutEverywhere`.
    await stores.users.lock(user_id, now().toISOString(), session);
    const { deletedCount } = await stores.sessions.endAll(user_id, session, keep);
    if (deletedCount === 0) return 0;
    const before = { sessions: deletedCount };
    const change = { account_id, livemode: null, target: user_id, before };
    await audit({ act: 'user.other_sessions_ended', ...change }, session);
    return deletedCount;
  });
}
