import { createHash, randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { inTransaction } from '../../base/mongo';
import { totpOwner, type UserDocument } from '../../store/users';
import type { ActDeps } from '../deps';

const STEP_S = 30;
const ISSUER = 'Payments dashboard';
const CODE = /^\d{6}$/;
const RECOVERY_CODES = 10;
/** 80 random bits each, so a fast hash protects them. */
const RECOVERY_BYTES = 10;

type SecondFactorDeps = Omit<ActDeps, 'payers'>;

/** Creates a secret for a user without a second factor; an earlier offer is replaced. */
export async function offerSecret(
  { stores, encrypter }: Pick<SecondFactorDeps, 'stores' | 'encrypter'>,
  { _id }: Pick<UserDocument, '_id'>,
): Promise<void> {
  const secret = new Secret({ size: 20 }).base32;
  await stores.users.offerTotp(_id, await encrypter.encrypt(secret, totpOwner(_id)));
}

export async function getOffer(
  { stores, encrypter }: Pick<SecondFactorDeps, 'stores' | 'encrypter'>,
  user_id: string,
) {
  const user = await stores.users.get(user_id);
  if (user === null || user.totp_offered === null) return null;
  const secret = await encrypter.decrypt(user.totp_offered, totpOwner(user_id));
  return { secret, uri: buildTotp(secret, user.email).toString() };
}

/**
 * Turns the second factor on.
 * @returns recovery codes, shown only once; null when the code is wrong
 */
export async function switchOn(
  { mongo, stores, encrypter, audit, now }: SecondFactorDeps,
  user_id: string,
  code: string,
): Promise<string[] | null> {
  const user = await stores.users.get(user_id);
  if (user === null || user.totp_offered === null) return null;
  const { _id, account_id, totp_offered: ciphertext } = user;
  const step = findStep(await encrypter.decrypt(ciphertext, totpOwner(_id)), code, now());
  if (step === null) return null;
  const codes = makeRecoveryCodes();
  return await inTransaction(mongo, async (session) => {
    const isUsed = await stores.users.useTotp(
      _id,
      { sealed: ciphertext, step },
      codes.map(hashCode),
      session,
    );
    if (!isUsed) return null;
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

/** Checks a code of the app or a recovery code; each works once. */
export async function verifySecondFactor(
  { mongo, stores, encrypter, audit, now }: SecondFactorDeps,
  user: UserDocument,
  input: string,
): Promise<boolean> {
  const { _id, account_id, totp } = user;
  if (totp === null) return false;
  const code = input.replace(/[\s-]/g, '').toUpperCase();
  if (CODE.test(code)) {
    const step = findStep(await encrypter.decrypt(totp.sealed, totpOwner(_id)), code, now());
    return step !== null && (await stores.users.useStep(_id, step));
  }
  return await inTransaction(mongo, async (session) => {
    if (!(await stores.users.useRecovery(_id, hashCode(code), session))) return false;
    const change = { account_id, livemode: null, target: _id };
    await audit({ act: 'user.recovery_code_used', ...change }, session);
    return true;
  });
}

/** Finds the time step of a code, at most one step from now. */
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

function makeRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const { base32 } = new Secret({ buffer: new Uint8Array(randomBytes(RECOVERY_BYTES)).buffer });
    return base32.replace(/(.{4})(?=.)/g, '$1-');
  });
}

function hashCode(code: string): string {
  return createHash('sha256').update(code.replaceAll('-', '')).digest('hex');
}
