import { createHash, randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { inTransaction } from '../../../base/mongo';
import { totpOwner, type UserDocument } from '../../../store/users';
import type { ActDeps } from '../../access';
import { notifyUser } from '../mail/outbox';
import type { UserRef } from './members';

const STEP_S = 30;
const ISSUER = 'Payments dashboard';
const CODE = /^\d{6}$/;
const OFFER_MS = 10 * 60_000;
const RECOVERY_CODES = 10;
/** 128 random bits each, so a fast hash protects them. */
const RECOVERY_BYTES = 16;

type SecondFactorDeps = Omit<ActDeps, 'payers'>;

type OfferDeps = Pick<SecondFactorDeps, 'stores' | 'encrypter' | 'now'>;

interface Enrollment {
  user_id: string;
  /** Session that gave the password for it. */
  session: string;
}

/** Replaces an earlier offer. */
export async function offerSecret(
  { stores, encrypter, now }: OfferDeps,
  { user_id, session }: Enrollment,
): Promise<void> {
  const secret = new Secret({ size: 20 }).base32;
  await stores.users.offerTotp(user_id, {
    totp_offered: await encrypter.encrypt(secret, totpOwner(user_id)),
    totp_offer: { session, until: new Date(now().getTime() + OFFER_MS) },
  });
}

/** Returns the offer only to the session that made it, for ten minutes. */
export async function getOffer(
  deps: OfferDeps,
  enrollment: Enrollment,
  merchant: { id: string; name: string },
) {
  const offer = await findOffer(deps, enrollment);
  if (offer === null) return null;
  const { user, secret } = offer;
  return { secret, uri: buildTotp(secret, nameEntry(user.email, merchant)).toString() };
}

async function findOffer({ stores, encrypter, now }: OfferDeps, { user_id, session }: Enrollment) {
  const user = await stores.users.get(user_id);
  const { totp_offered: ciphertext = null, totp_offer: offer } = user ?? {};
  if (user === null || ciphertext === null) return null;
  if (offer?.session !== session || offer.until <= now()) return null;
  return { user, ciphertext, secret: await encrypter.decrypt(ciphertext, totpOwner(user_id)) };
}

const ENTRY_NAME_LENGTH = 30;
const ENTRY_ID_LENGTH = 6;

/**
 * Names the merchant, and its id, since apps replace an entry of the same issuer and label.
 * @see https://github.com/google/google-authenticator/wiki/Key-Uri-Format
 */
function nameEntry(email: string, { id, name }: { id: string; name: string }): string {
  const merchant = [...name.toWellFormed()].slice(0, ENTRY_NAME_LENGTH).join('');
  const label = `${email} (${merchant}, ${id.slice(-ENTRY_ID_LENGTH)})`;
  // A colon ends the issuer.
  return label.replaceAll(/[:\s]+/g, ' ');
}

/**
 * Ends the user's other sessions, too.
 * @returns recovery codes, shown only once; null when the code is wrong, or not of this session's
 * offer
 */
export async function switchOn(
  deps: SecondFactorDeps,
  enrollment: Enrollment,
  code: string,
): Promise<string[] | null> {
  const { mongo, stores, audit, now } = deps;
  const offer = await findOffer(deps, enrollment);
  const step = offer && findStep(offer.secret, code, now());
  if (offer === null || step === null) return null;
  const { user, ciphertext } = offer;
  const { _id, account_id } = user;
  const { session: keep } = enrollment;
  const codes = makeRecoveryCodes();
  return await inTransaction(mongo, async (session) => {
    const hashes = codes.map(hashRecoveryCode);
    // A reset that ends this session must win.
    if ((await stores.sessions.find(keep, now(), session)) === null) return null;
    const confirmation = { ciphertext, step, session: keep, now: now() };
    if (!(await stores.users.useTotp(_id, confirmation, hashes, session))) return null;
    await stores.sessions.endAll(_id, session, keep);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.second_factor_on', ...change }, session);
    await notifyUser({ stores, now }, user, { kind: 'second_factor_on' }, session);
    return codes;
  });
}

/** Ends the user's other sessions, too. */
export async function switchOff(
  { mongo, stores, audit, now }: SecondFactorDeps,
  user: UserRef,
  keep: string,
): Promise<void> {
  const { _id, account_id } = user;
  await inTransaction(mongo, async (session) => {
    await stores.users.dropTotp(_id, session);
    await stores.sessions.endAll(_id, session, keep);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.second_factor_off', ...change }, session);
    await notifyUser({ stores, now }, user, { kind: 'second_factor_off' }, session);
  });
}

/** A code of the app or a recovery code works once. */
export async function verifySecondFactor(
  { mongo, stores, encrypter, audit, now }: SecondFactorDeps,
  user: UserDocument,
  input: string,
): Promise<boolean> {
  const { _id, account_id, totp } = user;
  const code = input.replace(/[\s-]/g, '').toUpperCase();
  if (totp !== null && CODE.test(code)) {
    const step = findStep(await encrypter.decrypt(totp.ciphertext, totpOwner(_id)), code, now());
    return step !== null && (await stores.users.useStep(_id, step));
  }
  return await inTransaction(mongo, async (session) => {
    if (!(await stores.users.useRecovery(_id, hashRecoveryCode(code), session))) return false;
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.recovery_code_used', ...change }, session);
    await notifyUser({ stores, now }, user, { kind: 'recovery_code_used' }, session);
    return true;
  });
}

/** Accepts one step of difference from now. */
function findStep(secret: string, code: string, now: Date): number | null {
  if (!CODE.test(code)) return null;
  const timestamp = now.getTime();
  const delta = buildTotp(secret, '').validate({ token: code, timestamp, window: 1 });
  return delta === null ? null : Math.floor(timestamp / 1_000 / STEP_S) + delta;
}

function buildTotp(secret: string, label: string): TOTP {
  const options = { algorithm: 'SHA1', digits: 6, period: STEP_S } as const;
  return new TOTP({ issuer: ISSUER, label, secret: Secret.fromBase32(secret), ...options });
}

export function makeRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const { base32 } = new Secret({ buffer: new Uint8Array(randomBytes(RECOVERY_BYTES)).buffer });
    return base32.replace(/(.{4})(?=.)/g, '$1-');
  });
}

export function hashRecoveryCode(code: string): string {
  return createHash('sha256').update(code.replaceAll('-', '')).digest('hex');
}
