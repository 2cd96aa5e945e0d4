import { hash, verify } from '@node-rs/argon2';

/** Least cost of argon2id by OWASP; it is the library's default algorithm. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Bounds of a password that a person chooses, in characters. @see docs/dashboard.md#sign-in */
export const PASSWORD_LENGTH = { min: 12, max: 200 } as const;

export function isLongEnough(password: string): boolean {
  return password.length >= PASSWORD_LENGTH.min && password.length <= PASSWORD_LENGTH.max;
}

export function hashPassword(password: string): Promise<string> {
  return hash(password, COST);
}

let nobodys: Promise<string> | undefined;

/**
 * Compares a password with its hash. Without one it takes as long, so that nobody learns by the time
 * whether there is such a user.
 */
export async function isPassword(
  password: string,
  password_hash: string | undefined,
): Promise<boolean> {
  nobodys ??= hashPassword('nobody');
  if (password.length > PASSWORD_LENGTH.max) return false;
  const matches = await verify(password_hash ?? (await nobodys), password);
  return matches && password_hash !== undefined;
}
