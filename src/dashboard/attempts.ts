import { createHash } from 'node:crypto';
import { counted } from '../domain/counted';
import type { Limit, ThrottleStore } from '../store/throttles';

const QUARTER_MS = 15 * 60_000;

/** Limits of attempts. @see docs/dashboard.md#sign-in */
const LIMITS = {
  /** Passwords for one e-mail address, whether there is such a user or not. */
  email: { max: 10, windowMs: QUARTER_MS },
  /** Passwords from one network address. */
  address: { max: 100, windowMs: QUARTER_MS },
  /** Codes of the second factor of one user. */
  code: { max: 10, windowMs: QUARTER_MS },
  /** Passwords given again by one signed-in user. */
  again: { max: 10, windowMs: QUARTER_MS },
} as const satisfies Record<string, Limit>;

type Counted = Partial<Record<keyof typeof LIMITS, string>>;

/**
 * Counts an attempt under each name, before it is made.
 * @returns minutes to wait; 0 when it may be made
 */
export async function countAttempt(
  throttles: Pick<ThrottleStore, 'count'>,
  counted: Counted,
  now: Date,
): Promise<number> {
  const waits = await Promise.all(
    namesOf(counted).map(([limit, name]) => throttles.count(name, LIMITS[limit], now)),
  );
  return Math.ceil(Math.max(0, ...waits) / 60_000);
}

/**
 * Forgets the attempts that went before a right one; of those from its network address only itself,
 * since others may share it.
 */
export async function forgetAttempts(
  throttles: Pick<ThrottleStore, 'clear' | 'takeBack'>,
  counted: Counted,
): Promise<void> {
  const forget = ([limit, name]: [keyof typeof LIMITS, string]) =>
    limit === 'address' ? throttles.takeBack(name) : throttles.clear(name);
  await Promise.all(namesOf(counted).map(forget));
}

export function tooMany(minutes: number): string {
  return `Too many attempts. Try again in ${counted(minutes, 'minute')}.`;
}

function namesOf(counted: Counted): [keyof typeof LIMITS, string][] {
  const limits = ['email', 'address', 'code', 'again'] as const;
  return limits.flatMap((limit) => {
    const value = counted[limit];
    return value === undefined ? [] : [[limit, nameOf(limit, value)]];
  });
}

/** Name of a count; hashed, since what is typed as an e-mail address may be anything. */
function nameOf(limit: string, value: string): string {
  return `${limit}:${createHash('sha256').update(value).digest('hex')}`;
}
