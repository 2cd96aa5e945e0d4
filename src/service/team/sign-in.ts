import { createHash } from 'node:crypto';
import { isPassword } from '../../encryption/password';
import type { Limit, ThrottleStore } from '../../store/throttles';
import type { UserDocument } from '../../store/users';
import { auditAsUser } from '../audit-log';
import type { ServiceDeps } from '../deps';
import { verifySecondFactor } from './second-factor';

const QUARTER_MS = 15 * 60_000;

/** @see docs/dashboard.md#sign-in */
const LIMITS = {
  /** Passwords for one e-mail address, even without such a user. */
  email: { max: 10, windowMs: QUARTER_MS },
  /** Passwords from one network address. */
  address: { max: 100, windowMs: QUARTER_MS },
  /** Codes of one user. */
  code: { max: 10, windowMs: QUARTER_MS },
  /** Passwords that a signed-in user repeats. */
  again: { max: 10, windowMs: QUARTER_MS },
} as const satisfies Record<string, Limit>;

type AttemptSubject = Partial<Record<keyof typeof LIMITS, string>>;

/** With `too_many`, the password or code was not checked. */
export type CheckResult =
  | { outcome: 'right'; user: UserDocument }
  | { outcome: 'wrong' }
  | { outcome: 'too_many'; minutes: number };

/** Checks e-mail and password. Neither result nor duration reveals whether there is such a user. */
export async function checkLogin(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  { email, password, address }: { email: string; password: string; address: string },
): Promise<CheckResult> {
  return await check(stores.throttles, { email, address }, now(), async () => {
    const user = await stores.users.byEmail(email);
    return (await isPassword(password, user?.password_hash)) ? user : null;
  });
}

export async function checkCode(deps: ServiceDeps, user: UserDocument, code: string) {
  return await check(deps.stores.throttles, { code: user._id }, deps.now(), async () => {
    const audit = auditAsUser(deps, user);
    return (await verifySecondFactor({ ...deps, audit }, user, code)) ? user : null;
  });
}

export async function checkPassword(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  user: UserDocument,
  password: string,
): Promise<CheckResult> {
  return await check(stores.throttles, { again: user._id }, now(), async () =>
    (await isPassword(password, user.password_hash)) ? user : null,
  );
}

async function check(
  throttles: Pick<ThrottleStore, 'count' | 'clear' | 'decrement'>,
  subject: AttemptSubject,
  now: Date,
  verify: () => Promise<UserDocument | null>,
): Promise<CheckResult> {
  const minutes = await countAttempt(throttles, subject, now);
  if (minutes > 0) return { outcome: 'too_many', minutes };
  const user = await verify();
  if (user === null) return { outcome: 'wrong' };
  await clearAttempts(throttles, subject);
  return { outcome: 'right', user };
}

/** Counts an attempt before it is made. @returns minutes to wait; 0 when the attempt is allowed */
async function countAttempt(
  throttles: Pick<ThrottleStore, 'count'>,
  subject: AttemptSubject,
  now: Date,
): Promise<number> {
  const waits = await Promise.all(
    listCounters(subject).map(([limit, name]) => throttles.count(name, LIMITS[limit], now)),
  );
  return Math.ceil(Math.max(0, ...waits) / 60_000);
}

/**
 * Clears the failed attempts after a correct one. For the network address it removes only the last
 * one, since others may share the address.
 */
async function clearAttempts(
  throttles: Pick<ThrottleStore, 'clear' | 'decrement'>,
  subject: AttemptSubject,
): Promise<void> {
  const clear = ([limit, name]: [keyof typeof LIMITS, string]) =>
    limit === 'address' ? throttles.decrement(name) : throttles.clear(name);
  await Promise.all(listCounters(subject).map(clear));
}

function listCounters(subject: AttemptSubject): [keyof typeof LIMITS, string][] {
  const limits = ['email', 'address', 'code', 'again'] as const;
  return limits.flatMap((limit) => {
    const value = subject[limit];
    return value === undefined ? [] : [[limit, getCounterName(limit, value)]];
  });
}

/** Hashed, since users may type anything as an e-mail address. */
function getCounterName(limit: string, value: string): string {
  return `${limit}:${createHash('sha256').update(value).digest('hex')}`;
}
