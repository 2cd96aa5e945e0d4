import { isBalanceAccountName, MAIN_BALANCE } from '../domain/balance-account';
import type { CallbackResource } from '../domain/callback';

/**
 * Language of the ledger: every transaction is a posting whose legs sum to zero. Money that is held
 * for a purpose stands in an account of its own (`reserved`, `transit`), so that pending and posted
 * money can both be read off, and each step is one more immutable posting.
 *
 * A book holds the accounts of one merchant in one environment and currency, or coin. An account is
 * named by the field that keeps its balance:
 * - `balances.{name}.available`, `balances.{name}.reserved`: the merchant's money; never below 0
 * - `clearing.{connector}`: the account with a bank; below 0 is money it holds for the merchant
 * - `transit.refunds`: money on its way out, not confirmed yet; never below 0
 * - `suspense.late`: customers' money that came after a payment had ended; never below 0
 * - `receivable.merchant`: below 0 is money that the merchant owes
 * - `income.fees`: fees that the service has earned
 * - `external.funding`: money from outside the product
 * - `external.adjustments`: what operators have corrected
 */

export interface Leg {
  /** Path of the balance in its book. */
  account: string;
  /** Minor units; above 0 credits, below 0 debits. */
  amount: number;
}

/** Leg in the smallest units of a coin, of which a number holds too few. */
export interface UnitLeg {
  account: string;
  amount: bigint;
}

export type AnyLeg = Leg | UnitLeg;

/** Steps that each kind of resource posts; each at most once, but for one of several deposits. */
interface Steps extends Record<CallbackResource, string> {
  payment: 'settled' | 'late_received' | 'late_reversed' | 'clawed_back';
  refund: 'accepted' | 'settled' | 'failed';
  payout: 'reserved' | 'captured' | 'released' | 'reversed' | 'returned';
  crypto_payment: 'credited' | 'returned';
  crypto_settlement: 'reserved' | 'captured' | 'released';
}

/** Postings of one kind of resource: its kind, and then the step. */
export type ResourcePosting<Kind extends CallbackResource> = `${Kind}_${Steps[Kind]}`;

/** Everything that can be posted; operators' own postings belong to no resource. */
export type PostingKind =
  | 'funded'
  | 'adjusted'
  | 'reversed'
  | { [Kind in CallbackResource]: ResourcePosting<Kind> }[CallbackResource];

/**
 * Posting to be written. The `resource_id` of an operator's is an id of its own, or the operation that
 * it reverses.
 */
export interface NewPosting {
  kind: PostingKind;
  resource_id: string;
  /** Part of the resource that it is about, where there are several: a deposit's transaction. */
  step?: string | undefined;
  account_id: string;
  livemode: boolean;
  /** ISO 4217, or the book of a coin. @see src/domain/crypto.ts */
  currency: string;
  /** ISO 8601, ms. */
  at: string;
  /** Day on which the bank books it, where it says so: `YYYY-MM-DD`. */
  value_date?: string | undefined;
  legs: readonly AnyLeg[];
  /** Operator who asked for it, and the reason. */
  note?: PostingNote | undefined;
}

/** Operator and reason of a posting. */
export interface PostingNote {
  operator: string | null;
  reason: string | null;
  /** Second operator, where one had to approve. */
  approved_by?: string;
}

/** Id of a posting: a step of a resource is never posted twice. */
export function operationId({
  kind,
  resource_id,
  step,
}: Pick<NewPosting, 'resource_id' | 'step'> & { kind: string }): string {
  return step === undefined ? `${kind}:${resource_id}` : `${kind}:${resource_id}:${step}`;
}

export function bookId({
  account_id,
  livemode,
  currency,
}: Pick<NewPosting, 'account_id' | 'livemode' | 'currency'>): string {
  return `${account_id}:${livemode ? 'live' : 'sandbox'}:${currency}`;
}

/** Account, environment and currency that a book's id names. @throws RangeError on any other text */
export function bookOwner(book: string) {
  const [, account_id, env, currency] = /^(.+):(live|sandbox):([^:]+)$/.exec(book) ?? [];
  if (account_id === undefined || currency === undefined) {
    throw new RangeError(`No id of a book: ${book}`);
  }
  return { account_id, livemode: env === 'live', currency };
}

/** Range of the ids of an account's books in one environment. */
export function booksOf(account_id: string, livemode: boolean): { $gte: string; $lt: string } {
  const start = `${account_id}:${livemode ? 'live' : 'sandbox'}`;
  return { $gte: `${start}:`, $lt: `${start};` };
}

const available = (name: string) => `balances.${checked(name)}.available`;
const reserved = (name: string) => `balances.${checked(name)}.reserved`;
const clearing = (connector: string) => `clearing.${checked(connector)}`;
const REFUNDS = 'transit.refunds';
const FEES = 'income.fees';
const LATE = 'suspense.late';
const ADJUSTMENTS = 'external.adjustments';
const RECEIVABLE = 'receivable.merchant';

/** Checks a name that becomes part of a path. @throws RangeError on any other text */
function checked(name: string): string {
  if (!isBalanceAccountName(name)) throw new RangeError(`No name of a ledger account: ${name}`);
  return name;
}

/** Legs that move `amount` from one account to the other. */
function transfer(from: string, to: string, amount: number): Leg[] {
  return [
    { account: from, amount: -amount },
    { account: to, amount },
  ];
}

function transferUnits(from: string, to: string, amount: bigint): UnitLeg[] {
  return [
    { account: from, amount: -amount },
    { account: to, amount },
  ];
}

function nonZero(legs: Leg[]): Leg[] {
  return legs.filter(({ amount }) => amount !== 0);
}

/** Legs of each kind of posting; amounts in minor units. */
export const LEGS = {
  /** An operator credits a balance. */
  funded: (balance: string, amount: number) =>
    transfer('external.funding', available(balance), amount),
  /**
   * An operator corrects a balance; below 0 debits it. What a merchant owes is collected against the
   * receivable.
   */
  adjusted: (balance: string, amount: number, against: 'adjustments' | 'receivable') =>
    transfer(against === 'receivable' ? RECEIVABLE : ADJUSTMENTS, available(balance), amount),
  /** An operator undoes a posting. */
  reversed: (legs: readonly Leg[]) =>
    legs.map(({ account, amount }) => ({ account, amount: -amount })),
  /** Credits `main`, without a processing fee. @see docs/decisions.md#balances */
  payment_settled: (connector: string, amount: number) =>
    transfer(clearing(connector), available(MAIN_BALANCE), amount),
  /** Holds money that came after the payment had ended, until it is sent back … */
  payment_late_received: (connector: string, amount: number) =>
    transfer(clearing(connector), LATE, amount),
  /** … which the bank confirms. */
  payment_late_reversed: (connector: string, amount: number) =>
    transfer(LATE, clearing(connector), amount),
  /**
   * Gives the bank back what it takes from a settled payment: from `main` as much as it holds, and
   * the merchant owes the rest.
   */
  payment_clawed_back: (connector: string, held: number, owed: number) =>
    nonZero([
      { account: clearing(connector), amount: held + owed },
      { account: available(MAIN_BALANCE), amount: -held },
      { account: RECEIVABLE, amount: -owed },
    ]),
  /** Debits the default balance when the refund is accepted. @see docs/decisions.md#balances */
  refund_accepted: (amount: number) => transfer(available(MAIN_BALANCE), REFUNDS, amount),
  /** Credits what the bank has not sent, where it sent less than it was asked for. */
  refund_settled: (connector: string, amount: number, sent: number) =>
    nonZero([
      { account: REFUNDS, amount: -amount },
      { account: clearing(connector), amount: sent },
      { account: available(MAIN_BALANCE), amount: amount - sent },
    ]),
  refund_failed: (amount: number) => transfer(REFUNDS, available(MAIN_BALANCE), amount),
  /** Amount and fee are reserved at creation … */
  payout_reserved: (balance: string, amount: number, fee: number) =>
    transfer(available(balance), reserved(balance), amount + fee),
  /** … captured at `sent` … */
  payout_captured: (balance: string, connector: string, amount: number, fee: number) =>
    nonZero([
      { account: reserved(balance), amount: -amount - fee },
      { account: clearing(connector), amount },
      { account: FEES, amount: fee },
    ]),
  /** … released when it fails before that … */
  payout_released: (balance: string, amount: number, fee: number) =>
    transfer(reserved(balance), available(balance), amount + fee),
  /** … and given back, both, when it fails after it. */
  payout_reversed: (balance: string, connector: string, amount: number, fee: number) =>
    nonZero([
      { account: clearing(connector), amount: -amount },
      { account: FEES, amount: -fee },
      { account: available(balance), amount: amount + fee },
    ]),
  /** Credits the amount of a payout that came back; the fee stays. */
  payout_returned: (balance: string, connector: string, amount: number) =>
    transfer(clearing(connector), available(balance), amount),
  /** Credits a deposit that counts, in the units of its coin. */
  crypto_payment_credited: (connector: string, amount: bigint) =>
    transferUnits(clearing(connector), available(MAIN_BALANCE), amount),
  /** Takes a deposit off again that goes back to the payer. */
  crypto_payment_returned: (connector: string, amount: bigint) =>
    transferUnits(available(MAIN_BALANCE), clearing(connector), amount),
  /** Reserves what a settlement pays out when it is accepted … */
  crypto_settlement_reserved: (amount: bigint) =>
    transferUnits(available(MAIN_BALANCE), reserved(MAIN_BALANCE), amount),
  /** … which has left when the chain has it for good … */
  crypto_settlement_captured: (connector: string, amount: bigint) =>
    transferUnits(reserved(MAIN_BALANCE), clearing(connector), amount),
  /** … and is given back when it has failed. */
  crypto_settlement_released: (amount: bigint) =>
    transferUnits(reserved(MAIN_BALANCE), available(MAIN_BALANCE), amount),
} satisfies Record<PostingKind, (...args: never[]) => AnyLeg[]>;

/** Whether a balance may never fall below 0. */
export function mustNotBeNegative(account: string): boolean {
  return /^(balances|transit|suspense)\./.test(account);
}

/** Whether a balance may never rise above 0: a merchant never owes less than nothing. */
export function mustNotBePositive(account: string): boolean {
  return account === RECEIVABLE;
}

/**
 * Steps of resources that need no balance to be looked at: they credit, or give back what a step of
 * the same resource holds, which the book has taken in.
 */
const OPEN_KINDS: ReadonlySet<string> = new Set<PostingKind>([
  'payment_settled',
  'payment_late_received',
  'refund_settled',
  'refund_failed',
  'payout_captured',
  'payout_released',
  'payout_reversed',
  'payout_returned',
  'crypto_payment_credited',
  'crypto_settlement_captured',
  'crypto_settlement_released',
]);

/**
 * Whether a posting stays open until its book takes it in: nothing that others may draw on falls by
 * it. @see docs/ledger.md#open-postings
 */
export function isOpen({ kind, legs }: { kind: string; legs: readonly OpenLeg[] }): boolean {
  return (
    OPEN_KINDS.has(kind) &&
    legs.every(({ account, amount }) => !isDrawnOn(account) || Number(String(amount)) >= 0)
  );
}

/** Leg as it is written, or as it is read. */
type OpenLeg = { account: string; amount: unknown };

/** Whether steps of several resources take from a balance. */
function isDrawnOn(account: string): boolean {
  return /^(balances\.[^.]+\.available$|suspense\.|receivable\.)/.test(account);
}

/** Asserts that legs sum to zero, in whole minor units, one for each account. @throws RangeError */
export function assertBalanced(legs: readonly AnyLeg[]): void {
  const accounts = new Set(legs.map(({ account }) => account));
  const isWhole = legs.every(({ amount }) => isWithin(amount));
  const sum = isWhole ? legs.reduce((total, { amount }) => total + BigInt(amount), 0n) : undefined;
  if (sum !== 0n || legs.length < 2 || accounts.size < legs.length) {
    const each = legs.map(({ account, amount }) => `${account} ${amount}`);
    throw new RangeError(`Not a balanced posting: ${each.join(', ')}`);
  }
}

/** Largest amount of a coin in one leg; the database adds up to 34 digits exactly. */
const UNITS_MAX = 10n ** 28n;

function isWithin(amount: number | bigint): boolean {
  if (typeof amount === 'number') return Number.isSafeInteger(amount);
  return amount < UNITS_MAX && amount > -UNITS_MAX;
}

/** Error of a balance that would fall below 0; nothing was written. */
export class InsufficientBalance extends Error {
  override readonly name = 'InsufficientBalance';
}
