import { randomBytes } from 'node:crypto';
import { hashPassword } from '../../../encryption/password';
import type { UserDocument } from '../../../store/users';

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
