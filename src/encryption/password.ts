import { hash, verify } from '@node-rs/argon2';

/** Minimum cost of argon2id by OWASP; it is the default algorithm of the library. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Characters. @see docs/dashboard.md#sign-in */
export const PASSWORD_LENGTH = { min: 12, max: 200 } as const;

export function isLongEnough(password: string): boolean {
  return password.length >= PASSWORD_LENGTH.min && password.length <= PASSWORD_LENGTH.max;
}

export function hashPassword(password: string): Promise<string> {
  return hash(password, COST);
}

let dummyHash: Promise<string> | undefined;

/**
 * Compares a password with its hash. Without a hash it takes the same time, so that the duration
 * does not reveal whether the user exists.
 */
export async function isPassword(
  password: string,
  password_hash: string | undefined,
): Promise<boolean> {
  dummyHash ??= hashPassword('nobody');
  if (password.length > PASSWORD_LENGTH.max) return false;
  const matches = await verify(password_hash ?? (await dummyHash), password);
  return matches && password_hash !== undefined;
}
