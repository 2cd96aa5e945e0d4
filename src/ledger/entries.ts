import type { CallbackResource } from '../domain/callback/callback';

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

export interface EntryLine {
  /** Path of the balance in its book. */
  account: string;
  /** Minor units; above 0 credits, below 0 debits. */
  amount: number;
}

/** Leg in the smallest units of a coin, of which a number holds too few. */
export interface AssetLine {
  account: string;
  amount: bigint;
}

export type AnyLine = EntryLine | AssetLine;

/** Steps that each kind of resource posts; each at most once, but for one of several deposits. */
interface Steps extends Record<CallbackResource, string> {
  payment: 'settled' | 'late_received' | 'late_reversed' | 'clawed_back';
  refund: 'accepted' | 'settled' | 'failed';
  payout: 'reserved' | 'captured' | 'released' | 'reversed' | 'returned';
  crypto_payment: 'credited' | 'returned';
  crypto_settlement: 'reserved' | 'captured' | 'released';
}

/** Postings of one kind of resource: its kind, and then the step. */
export type ResourceEntryKind<Kind extends CallbackResource> = `${Kind}_${Steps[Kind]}`;

/** Everything that can be posted; operators' own postings belong to no resource. */
export type EntryKind =
  | 'funded'
  | 'adjusted'
  | 'reversed'
  | { [Kind in CallbackResource]: ResourceEntryKind<Kind> }[CallbackResource];

/**
 * Posting to be written. The `resource_id` of an operator's is an id of its own, or the operation that
 * it reverses.
 */
export interface NewEntry {
  kind: EntryKind;
  resource_id: string;
  /** Part of the resource that it is about, where there are several: a deposit's transaction. */
  step?: string | undefined;
  account_id: string;
  livemode: boolean;
  /** ISO 4217, or the book of a coin. @see src/domain/crypto/assets.ts */
  currency: string;
  /** ISO 8601, ms. */
  at: string;
  /** Day on which the bank books it, where it says so: `YYYY-MM-DD`. */
  value_date?: string | undefined;
  legs: readonly AnyLine[];
  /** Operator who asked for it, and the reason. */
  note?: EntryNote | undefined;
}

/** Operator and reason of a posting. */
export interface EntryNote {
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
}: Pick<NewEntry, 'resource_id' | 'step'> & { kind: string }): string {
  return step === undefined ? `${kind}:${resource_id}` : `${kind}:${resource_id}:${step}`;
}

export function bookId({
  account_id,
  livemode,
  currency,
}: Pick<NewEntry, 'account_id' | 'livemode' | 'currency'>): string {
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
export function buildBookRange(
  account_id: string,
  livemode: boolean,
): { $gte: string; $lt: string } {
  const start = `${account_id}:${livemode ? 'live' : 'sandbox'}`;
  return { $gte: `${start}:`, $lt: `${start};` };
}

/**
 * Steps of resources that need no balance to be looked at: they credit, or give back what a step of
 * the same resource holds, which the book has taken in.
 */
const PENDING_KINDS: ReadonlySet<string> = new Set<EntryKind>([
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
 * it. @see docs/ledger.md#pending-entries
 */
export function isPending({ kind, legs }: { kind: string; legs: readonly PendingLine[] }): boolean {
  return (
    PENDING_KINDS.has(kind) &&
    legs.every(({ account, amount }) => !isDrawnOn(account) || Number(String(amount)) >= 0)
  );
}

/** Leg as it is written, or as it is read. */
type PendingLine = { account: string; amount: unknown };

/** Whether steps of several resources take from a balance. */
function isDrawnOn(account: string): boolean {
  return /^(balances\.[^.]+\.available$|suspense\.|receivable\.)/.test(account);
}

/** Error of a balance that would fall below 0; nothing was written. */
export class InsufficientBalance extends Error {
  override readonly name = 'InsufficientBalance';
}
