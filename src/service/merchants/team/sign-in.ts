import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createNamedGates, type NamedGates } from '../../../base/gate';
import { inTransaction } from '../../../base/mongo';
import { toCustomerNetwork } from '../../../base/networks';
import { isPassword } from '../../../encryption/password';
import type { Limit, ThrottleStore } from '../../../store/throttles';
import type { UserDocument } from '../../../store/users';
import type { ServiceDeps, WriteDeps } from '../../access';
import { auditAsUser, type Origin } from '../../operators/audit/log';
import { isPasswordExpired } from './members';
import { verifySecondFactor } from './second-factor';

const QUARTER_MS = 15 * 60_000;
/** Longer than the comparison for an address of several merchants. */
const WRONG_MS_MIN = 500;

interface Counter extends Limit {
  /** Attempts that a right one removes. */
  right: 'all' | 'itself';
  /** Names of the user's attempts that `unlockUser` removes. */
  unlock?: (user: UserDocument) => readonly string[];
}

const TEN = { max: 10, windowMs: QUARTER_MS, right: 'all' } as const;
const SHARED = { max: 100, windowMs: QUARTER_MS, right: 'itself' } as const;
const byEmail = ({ email }: UserDocument) => [email];
const byUser = ({ _id }: UserDocument) => [_id];

/** @see docs/dashboard.md#sign-in */
const COUNTERS = {
  /** E-mail address from one network, even without such a user. */
  pair: { ...TEN, unlock: byEmail },
  /** E-mail address from all networks. */
  email: { ...SHARED, unlock: byEmail },
  network: SHARED,
  /** User in a browser that this user has signed in with; then no other of these counts. */
  device: { ...TEN, unlock: ({ device_hashes = [] }: UserDocument) => device_hashes },
  /** E-mail address that an operator has unlocked; then no other of these counts. */
  unlocked: TEN,
  /** Codes of one user, in each browser that the user has signed in with by themselves. */
  code: { ...TEN, unlock: byUser },
  codeOfDay: { ...TEN, max: 30, windowMs: 24 * 60 * 60_000, unlock: byUser },
  /** Signed-in user who repeats the password. */
  again: { ...TEN, unlock: byUser },
  /** Challenges of a network, or of a browser that a user has signed in with. */
  passkey: SHARED,
} as const satisfies Record<string, Counter>;

/** Whose attempt it is, for each counter that counts it. */
type AttemptSubject = Partial<Record<keyof typeof COUNTERS, string | readonly string[]>>;

/** `too_many`: not everything was checked, and nothing was right. */
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
 * Neither result nor duration reveals to strangers whether there is such a user, nor do they ever
 * keep out a browser that the user has signed in with.
 */
export async function checkLogin(
  { limitSignIns, ...deps }: Pick<ServiceDeps, 'stores' | 'now'> & { limitSignIns: SignInLanes },
  login: Login,
): Promise<LoginCheck> {
  const startedAt = performance.now();
  const check = await limitSignIns(login, () => checkAttempt(deps, login));
  if (check?.outcome === 'wrong') await wait(startedAt + WRONG_MS_MIN - performance.now());
  return check ?? { outcome: 'too_many', minutes: 1, user_ids: [] };
}

async function checkAttempt(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  { email, password, address, device, merchant }: Login,
): Promise<LoginCheck> {
  const users = await stores.users.byEmail(email);
  const matching: UserDocument[] = [];
  const compare = async (subject: AttemptSubject, those: readonly UserDocument[]) => {
    const minutes = await countAttempt(stores.throttles, subject, now());
    if (minutes > 0) return minutes;
    // Compares at least once, so that the duration does not reveal whether there is a user.
    if (those.length === 0) await isPassword(password, undefined);
    const right: UserDocument[] = [];
    for (const each of those) {
      if (await isPassword(password, each.password_hash)) right.push(each);
    }
    matching.push(...right);
    const isRight = right.length > 0 && right.length === those.length;
    if (isRight) await clearAttempts(stores.throttles, subject);
    return 0;
  };
  // A merchant can make itself a user of the address: neither that user's browser nor that user's
  // password may help to guess the password of another one.
  const others: UserDocument[] = [];
  let minutes = 0;
  for (const each of users) {
    const knownDevice = findKnownDevice(each, device);
    if (knownDevice === null) others.push(each);
    else minutes = Math.max(minutes, await compare({ device: [knownDevice, each._id] }, [each]));
  }
  if (others.length > 0 || users.length === 0) {
    const network = toSignInNetwork(address);
    const unlocked = nameCounter('unlocked', email);
    const isUnlocked = await stores.throttles.isOpen(unlocked, COUNTERS.unlocked, now());
    const subject = isUnlocked ? { unlocked: email } : { pair: [email, network], email, network };
    minutes = Math.max(minutes, await compare(subject, others));
  }
  const user_ids = users.map(({ _id }) => _id);
  if (matching.length === 0) {
    return minutes > 0
      ? { outcome: 'too_many', minutes, user_ids }
      : { outcome: 'wrong', user_ids };
  }
  const valid = matching.filter((each) => !isPasswordExpired(each, now()));
  if (valid.length === 0) return { outcome: 'expired', user_ids };
  const chosen = valid.filter((each) => [each.account_id, undefined].includes(merchant));
  const [user] = chosen;
  if (user !== undefined && chosen.length === 1) return { outcome: 'right', user, user_ids };
  return { outcome: 'several', users: valid, user_ids };
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
  throttles: Pick<ThrottleStore, 'clearAll' | 'open'>,
  user: UserDocument,
  now: Date,
): Promise<void> {
  const names = COUNTER_NAMES.flatMap((counter) => {
    const { unlock }: Counter = COUNTERS[counter];
    return (unlock?.(user) ?? []).map((whose) => nameCounter(counter, whose));
  });
  await Promise.all(names.map((name) => throttles.clearAll(name)));
  await throttles.open(nameCounter('unlocked', user.email), COUNTERS.unlocked, now);
}

/** Customers get a whole IPv6 /48, so its parts count as one network. */
export function toSignInNetwork(address: string): string {
  return toCustomerNetwork(address, 48);
}

/** @returns the browser if the user has signed in with it, so that its attempts count apart */
export function findKnownDevice(
  { device_hashes = [] }: Pick<UserDocument, 'device_hashes'>,
  device: string | null,
): string | null {
  return device !== null && device_hashes.includes(device) ? device : null;
}

interface CodeAttempt {
  code: string;
  /** Hash of the device cookie. */
  device: string | null;
  origin?: Origin;
}

export async function checkCode(
  deps: ServiceDeps,
  user: UserDocument,
  { code, device, origin }: CodeAttempt,
) {
  const browser = { user_id: user._id, knownDevice: findKnownDevice(user, device) };
  return await limitCodes(deps, browser, async () => {
    const audit = auditAsUser(deps, user, origin);
    return (await verifySecondFactor({ ...deps, audit }, user, code)) ? user : null;
  });
}

export async function limitCodes<Result>(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  { user_id, knownDevice }: { user_id: string; knownDevice: string | null },
  verify: () => Promise<Result | null>,
): Promise<CheckResult<Result>> {
  const whose = knownDevice === null ? user_id : [user_id, knownDevice];
  return await check(stores.throttles, { code: whose, codeOfDay: whose }, now(), verify);
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
  const counters = listCounters(subject).map(({ name, limit }) => [name, limit] as const);
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
  await Promise.all(
    listCounters(subject).map(({ name, limit }) =>
      limit.right === 'itself' ? throttles.decrement(name) : throttles.clear(name),
    ),
  );
}

const COUNTER_NAMES = Object.keys(COUNTERS) as (keyof typeof COUNTERS)[];

function listCounters(subject: AttemptSubject): { name: string; limit: Counter }[] {
  return COUNTER_NAMES.flatMap((counter) => {
    const whose = subject[counter];
    return whose === undefined
      ? []
      : [{ name: nameCounter(counter, whose), limit: COUNTERS[counter] }];
  });
}

/** Hashed, since users may type anything as an e-mail address. */
function nameCounter(counter: keyof typeof COUNTERS, whose: string | readonly string[]): string {
  const hashes = [whose].flat().map((part) => createHash('sha256').update(part).digest('hex'));
  return [counter, ...hashes].join(':');
}

/** Shared by all strangers, of whose networks each waits with one attempt. */
const STRANGERS = { atOnce: 1, waitingMax: 50, rest: 3 } as const;
/** Limits of the strangers of one network. */
const NETWORK = { atOnce: 1, waitingMax: 5 } as const;
/** Limits of one browser in which a user has signed in. */
const DEVICE = { atOnce: 1, waitingMax: 10 } as const;

const EVERYBODY = 'strangers';

/** @returns null when too many wait already */
export type SignInLanes = <T>(
  visitor: Pick<Login, 'signedDevice' | 'address'>,
  attempt: () => Promise<T>,
) => Promise<T | null>;

/**
 * Separates strangers from browsers that have signed in, in one process, and their networks from
 * each other: a flood must take neither the connections to MongoDB nor the thread that compares
 * passwords.
 * @see docs/dashboard.md#sign-in
 */
export function createSignInLanes(): SignInLanes {
  const strangers = createNamedGates(STRANGERS);
  const networks = createNamedGates(NETWORK);
  const devices = createNamedGates(DEVICE);
  const enter = async <T>(lane: NamedGates, name: string, attempt: () => Promise<T>) =>
    lane.isFull(name) ? null : await lane.run(name, attempt);
  return async ({ signedDevice, address }, attempt) => {
    if (signedDevice !== null) return await enter(devices, signedDevice, attempt);
    return await enter(networks, toSignInNetwork(address), () =>
      enter(strangers, EVERYBODY, attempt),
    );
  };
}
