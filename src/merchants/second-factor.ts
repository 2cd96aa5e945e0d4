import { createHash, randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Sealer } from '../keys/seal';
import { inTransaction } from '../mongo';
import { totpOwner, type UserDocument } from '../store/users';
import type { StaffDeps } from './staff';

const STEP_S = 30;
const ISSUER = 'Payments dashboard';
const CODE = /^\d{6}$/;
const RECOVERY_CODES = 10;
/** 80 random bits each, so that a fast hash keeps them. */
const RECOVERY_BYTES = 10;

export interface SecondFactorDeps extends StaffDeps {
  sealer: Sealer;
}

/** Secret that is being set up, as an app takes it. */
export interface Offer {
  /** Base32, to be typed. */
  secret: string;
  /** `otpauth:` address, to be scanned. */
  uri: string;
}

/** Makes a secret for a person who has no second factor yet; an earlier offer is replaced. */
export async function offer(
  { stores, sealer }: Pick<SecondFactorDeps, 'stores' | 'sealer'>,
  { _id }: Pick<UserDocument, '_id'>,
): Promise<void> {
  const secret = new Secret({ size: 20 }).base32;
  await stores.users.offerTotp(_id, await sealer.seal(secret, totpOwner(_id)));
}

/** Opens what was offered; null when nothing is. */
export async function offered(
  sealer: Sealer,
  { _id, email, totp_offered }: UserDocument,
): Promise<Offer | null> {
  if (totp_offered === null) return null;
  const secret = await sealer.open(totp_offered, totpOwner(_id));
  return { secret, uri: totpOf(secret, email).toString() };
}

/**
 * Takes the offered secret into use when the code is right.
 * @returns recovery codes, shown this once; null when the code is wrong
 */
export async function switchOn(
  { mongo, stores, sealer, audit, now }: SecondFactorDeps,
  user: UserDocument,
  code: string,
): Promise<string[] | null> {
  const { _id, account_id, totp_offered: sealed } = user;
  if (sealed === null) return null;
  const step = stepOf(await sealer.open(sealed, totpOwner(_id)), code, now());
  if (step === null) return null;
  const codes = makeRecoveryCodes();
  return await inTransaction(mongo, async (session) => {
    const used = await stores.users.useTotp(_id, { sealed, step }, codes.map(hashCode), session);
    if (!used) return null;
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.second_factor_on', ...change }, session);
    return codes;
  });
}

export async function switchOff(
  { mongo, stores, audit }: SecondFactorDeps,
  { _id, account_id }: Pick<UserDocument, '_id' | 'account_id'>,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    await stores.users.dropTotp(_id, session);
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.second_factor_off', ...change }, session);
  });
}

/** Checks a code of the app, or uses a recovery code up; each works once. */
export async function isSecondFactor(
  { mongo, stores, sealer, audit, now }: SecondFactorDeps,
  user: UserDocument,
  given: string,
): Promise<boolean> {
  const { _id, account_id, totp } = user;
  if (totp === null) return false;
  const code = given.replace(/[\s-]/g, '').toUpperCase();
  if (CODE.test(code)) {
    const step = stepOf(await sealer.open(totp.sealed, totpOwner(_id)), code, now());
    return step !== null && (await stores.users.useStep(_id, step));
  }
  return await inTransaction(mongo, async (session) => {
    if (!(await stores.users.useRecovery(_id, hashCode(code), session))) return false;
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.recovery_code_used', ...change }, session);
    return true;
  });
}

/** Finds the time step of a code, one before and one after now included; null when it is wrong. */
function stepOf(secret: string, code: string, now: Date): number | null {
  if (!CODE.test(code)) return null;
  const timestamp = now.getTime();
  const delta = totpOf(secret, '').validate({ token: code, timestamp, window: 1 });
  return delta === null ? null : Math.floor(timestamp / 1_000 / STEP_S) + delta;
}

function totpOf(secret: string, label: string): TOTP {
  const of = { algorithm: 'SHA1', digits: 6, period: STEP_S } as const;
  return new TOTP({ issuer: ISSUER, label, secret: Secret.fromBase32(secret), ...of });
}

function makeRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const { base32 } = new Secret({ buffer: new Uint8Array(randomBytes(RECOVERY_BYTES)).buffer });
    return base32.replace(/(.{4})(?=.)/g, '$1-');
  });
}

function hashCode(code: string): string {
  return createHash('sha256').update(code.replaceAll('-', '')).digest('hex');
}
