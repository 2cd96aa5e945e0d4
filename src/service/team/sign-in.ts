import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { inTransaction } from '../../base/mongo';
import { toCustomerNetwork } from '../../base/networks';
import { isPassword } from '../../encryption/password';
import type { Limit, ThrottleStore } from '../../store/throttles';
import type { UserDocument } from '../../store/users';
import { auditAsUser, type Origin } from '../audit-log';
import type { ServiceDeps, WriteDeps } from '../deps';
import { isPasswordExpired } from './initial-password';
import { verifySecondFactor } from './second-factor';
import type { SignInLanes } from './sign-in-lanes';

const QUARTER_MS = 15 * 60_000;
/** Longer than the comparison for an address of several merchants. */
const WRONG_MS_MIN = 500;

/** @see docs/dashboard.md#sign-in */
const LIMITS = {
  /** Address from one network, even without such a user. */
  pair: { max: 10, windowMs: QUARTER_MS },
  /** Address from all networks. */
  email: { max: 100, windowMs: QUARTER_MS },
  network: { max: 100, windowMs: QUARTER_MS },
  total: { max: 3_000, windowMs: QUARTER_MS },
  /** Browser that the user has signed in with; then no other of these counts. */
  device: { max: 10, windowMs: QUARTER_MS },
  /** E-mail address that an operator has unlocked; then no other of these counts. */
  unlocked: { max: 10, windowMs: QUARTER_MS },
  /** Codes of one user. */
  code: { max: 10, windowMs: QUARTER_MS },
  codeOfDay: { max: 30, windowMs: 24 * 60 * 60_000 },
  /** Signed-in user who repeats the password. */
  again: { max: 10, windowMs: QUARTER_MS },
  /** Challenges of a network, or of a browser that a user has signed in with. */
  passkey: { max: 100, windowMs: QUARTER_MS },
} as const satisfies Record<string, Limit>;
/** A correct attempt removes only itself from these. */
const SHARED: readonly string[] = ['email', 'network', 'total', 'passkey'];

type AttemptSubject = Partial<Record<keyof typeof LIMITS, string>>;

/** `too_many`: nothing was checked. */
export type CheckResult<User = UserDocument> =
  | { outcome: 'right'; user: User }
  | { outcome: 'wrong' }
  | { outcome: 'too_many'; minutes: number };

/** `expired`: the initial password was not replaced in time. `user_ids` are for the log alone. */
type LoginCheck = (
  | CheckResult
  | { outcome: 'several'; users: readonly UserDocument[] }
  | { outcome: 'expired' }
) & { user_ids: readonly string[] };

interface Login {
  email: string;
  password: string;
  /** Network address. */
  address: string;
  /** Hash of the device cookie. */
  device: string | null;
  /** Present if the service signed the cookie: a user has signed in with it. */
  signedDevice: string | null;
  /** Account, where the password fits several. */
  merchant: string | undefined;
}

/**
 * Neither result nor duration reveals whether there is such a user. Strangers never keep out a
 * browser that the user has signed in with.
 */
export async function checkLogin(
  { limitSignIns, ...deps }: Pick<ServiceDeps, 'stores' | 'now'> & { limitSignIns: SignInLanes },
  login: Login,
): Promise<LoginCheck> {
  const startedAt = performance.now();
  const check = await limitSignIns(login.signedDevice, () => checkAttempt(deps, login));
  if (check?.outcome === 'wrong') await wait(startedAt + WRONG_MS_MIN - performance.now());
  return check ?? { outcome: 'too_many', minutes: 1, user_ids: [] };
}

async function checkAttempt(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  { email, password, address, device, merchant }: Login,
): Promise<LoginCheck> {
  const users = await stores.users.byEmail(email);
  const network = toCustomerNetwork(address);
  const isKnown = device !== null && users.some((each) => each.device_hashes?.includes(device));
  const unlocked = getCounterName('unlocked', email);
  const isUnlocked = !isKnown && (await stores.throttles.isOpen(unlocked, LIMITS.unlocked, now()));
  const subject = isKnown
    ? { device }
    : isUnlocked
      ? { unlocked: email }
      : { pair: pairName(email, network), email, network, total: 'all' };
  const result = await check(stores.throttles, subject, now(), async () => {
    const matching = await findMatching(users, password);
    return matching.length === 0 ? null : matching;
  });
  const user_ids = users.map(({ _id }) => _id);
  if (result.outcome !== 'right') return { ...result, user_ids };
  const valid = result.user.filter((each) => !isPasswordExpired(each, now()));
  if (valid.length === 0) return { outcome: 'expired', user_ids };
  const chosen = valid.filter((each) => [each.account_id, undefined].includes(merchant));
  const [user] = chosen;
  if (user !== undefined && chosen.length === 1) return { outcome: 'right', user, user_ids };
  return { outcome: 'several', users: valid, user_ids };
}

/** Compares at least once, so that the duration does not reveal whether there is a user. */
async function findMatching(users: readonly UserDocument[], password: string) {
  if (users.length === 0) await isPassword(password, undefined);
  const matching: UserDocument[] = [];
  for (const user of users) {
    if (await isPassword(password, user.password_hash)) matching.push(user);
  }
  return matching;
}

export async function listMerchants(
  { stores }: Pick<ServiceDeps, 'stores'>,
  users: readonly UserDocument[],
): Promise<[string, string][]> {
  const accounts = await Promise.all(users.map((user) => stores.accounts.get(user.account_id)));
  return accounts.flatMap((account) => (account === null ? [] : [[account._id, account.name]]));
}

/** Clears the attempts that keep a user out. @returns whether there is such a user */
export async function unlockUser(
  { stores, audit, mongo, now }: WriteDeps,
  email: string,
): Promise<boolean> {
  const users = await stores.users.byEmail(email.toLowerCase());
  for (const user of users) {
    await clearUser(stores.throttles, user, now());
    await inTransaction(mongo, async (session) => {
      const { _id: target, account_id } = user;
      await audit({ act: 'user.unlocked', account_id, livemode: null, target }, session);
    });
  }
  return users.length > 0;
}

/** Counts the next attempts apart, too, since others may have used up what all share. */
export async function clearUser(
  throttles: Pick<ThrottleStore, 'clear' | 'clearAll' | 'open'>,
  { _id, email, device_hashes = [] }: UserDocument,
  now: Date,
): Promise<void> {
  const own = { email, code: _id, codeOfDay: _id, again: _id };
  const names = listCounters(own).map(([, name]) => name);
  const devices = device_hashes.map((device) => getCounterName('device', device));
  await Promise.all([...names, ...devices].map((name) => throttles.clear(name)));
  await throttles.clearAll(`pair:${hashText(email)}`);
  await throttles.open(getCounterName('unlocked', email), LIMITS.unlocked, now);
}

export async function checkCode(
  deps: ServiceDeps,
  user: UserDocument,
  code: string,
  origin?: Origin,
) {
  const subject = { code: user._id, codeOfDay: user._id };
  return await check(deps.stores.throttles, subject, deps.now(), async () => {
    const audit = auditAsUser(deps, user, origin);
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

async function check<User>(
  throttles: Pick<ThrottleStore, 'wait' | 'count' | 'clear' | 'decrement'>,
  subject: AttemptSubject,
  now: Date,
  verify: () => Promise<User | null>,
): Promise<CheckResult<User>> {
  const minutes = await countAttempt(throttles, subject, now);
  if (minutes > 0) return { outcome: 'too_many', minutes };
  const user = await verify();
  if (user === null) return { outcome: 'wrong' };
  await clearAttempts(throttles, subject);
  return { outcome: 'right', user };
}

/**
 * Counts before the attempt is made; a refused one writes nothing, but for races.
 * @returns minutes to wait; 0 when the attempt is allowed
 */
export async function countAttempt(
  throttles: Pick<ThrottleStore, 'wait' | 'count'>,
  subject: AttemptSubject,
  now: Date,
): Promise<number> {
  const counters = listCounters(subject).map(([limit, name]) => [name, LIMITS[limit]] as const);
  const count = async () => {
    const waits = counters.map(([name, limit]) => throttles.count(name, limit, now));
    return Math.max(0, ...(await Promise.all(waits)));
  };
  return Math.ceil(((await throttles.wait(counters, now)) || (await count())) / 60_000);
}

/** Removes only the last attempt from a shared counter. */
export async function clearAttempts(
  throttles: Pick<ThrottleStore, 'clear' | 'decrement'>,
  subject: AttemptSubject,
): Promise<void> {
  const clear = ([limit, name]: [keyof typeof LIMITS, string]) =>
    SHARED.includes(limit) ? throttles.decrement(name) : throttles.clear(name);
  await Promise.all(listCounters(subject).map(clear));
}

function listCounters(subject: AttemptSubject): [keyof typeof LIMITS, string][] {
  const limits = Object.keys(LIMITS) as (keyof typeof LIMITS)[];
  return limits.flatMap((limit) => {
    const value = subject[limit];
    if (value === undefined) return [];
    return [[limit, limit === 'pair' ? `pair:${value}` : getCounterName(limit, value)]];
  });
}

/** Begins with the e-mail address, so that all of its networks can be cleared. */
function pairName(email: string, network: string): string {
  return `${hashText(email)}:${hashText(network)}`;
}

/** Users may type anything as an e-mail address. */
function getCounterName(limit: string, value: string): string {
  return `${limit}:${hashText(value)}`;
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
