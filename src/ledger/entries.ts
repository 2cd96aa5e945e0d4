import type { CallbackResource } from '../domain/banks/callback';
import type { DepositEntry } from '../domain/crypto/deposit-money';
import type { BalanceTransactionType } from '../domain/money/money';
import { SENT, type StoredInteger } from './ledger-accounts';

/**
 * Language of the ledger: a journal entry is immutable, and its lines sum to zero. An account is
 * named by the field of its balance in the book.
 * @see docs/ledger.md
 */

export interface EntryLine {
  account: string;
  /** Minor units, or an asset's smallest as a bigint; above 0 credits, below 0 debits. */
  amount: number | bigint;
}

/** Each step is posted once, or once for each deposit, movement or dispute. */
interface Steps {
  payment: 'settled' | 'held' | 'resolved' | 'clawed_back' | 'dispute_opened' | 'dispute_won';
  refund: 'accepted' | 'settled' | 'failed' | MovementStep;
  payout: 'reserved' | 'captured' | 'released' | 'reversed' | 'returned' | MovementStep;
  /** Its entries are those of its payment. */
  dispute: never;
  crypto_payment: DepositEntry;
  crypto_settlement: 'reserved' | 'captured' | 'released' | 'fee' | MovementStep;
}

/** Steps of a movement in suspense, by its id. */
type MovementStep = 'held' | 'resolved';

export type ResourceEntryKind<Kind extends CallbackResource> = `${Kind}_${Steps[Kind]}`;

export type BankEntryKind =
  | 'bank_opening'
  | 'bank_line'
  | 'bank_line_matched'
  | 'bank_line_unmatched'
  | 'bank_line_abandoned';

export type EntryKind =
  | 'funded'
  | 'adjusted'
  | 'reversed'
  | 'debt_collected'
  | 'made_available'
  | 'platform_posted'
  | BankEntryKind
  | { [Kind in CallbackResource]: ResourceEntryKind<Kind> }[CallbackResource];

/** Account of the service's own book. */
export const PLATFORM = 'platform';

/**
 * `resource_id` of an operator's entry is its own id or the operation it reverses; of a
 * statement's, the line or the bank account.
 */
export interface NewEntry {
  kind: EntryKind;
  resource_id: string;
  /** Transaction of a deposit, id of a movement or dispute, or number of a match. */
  step?: string | undefined;
  /** Merchant, bank account, or `PLATFORM`. */
  account_id: string;
  livemode: boolean;
  /** ISO 4217, or the book of an asset. @see src/domain/crypto/assets.ts */
  currency: string;
  /** ISO 8601, ms. */
  at: string;
  /** Day on which the bank books it, if reported: `YYYY-MM-DD`. */
  value_date?: string | undefined;
  bank_reference?: string | null | undefined;
  /** The entry is one end of a transfer between own accounts. */
  transfer?: Omit<TransferEnd, 'other'> | undefined;
  /** Entry that this one reverses before any statement has shown it. */
  offsets?: string | undefined;
  lines: readonly EntryLine[];
  /** Minor units of debt above which it is refused; absent: no limit. */
  owed_max?: number | undefined;
  fee?: number | bigint | undefined;
  note?: EntryNote | undefined;
}

export interface TransferEnd {
  /** Day from which the other end may be booked, and after which it is missing: `YYYY-MM-DD`. */
  day: string;
  until: string;
  /** Names under which its bank may have it; none of what an operator has posted. */
  names: readonly string[];
  /** Entry of the other end; null until it is posted. */
  other: string | null;
}

export interface EntryNote {
  operator: string | null;
  reason: string | null;
  approved_by?: string;
}

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

/** @throws RangeError when it is no id of a book */
export function bookOwner(book: string) {
  const [, account_id, env, currency] = /^(.+):(live|sandbox):([^:]+)$/.exec(book) ?? [];
  if (account_id === undefined || currency === undefined) {
    throw new RangeError(`No id of a book: ${book}`);
  }
  return { account_id, livemode: env === 'live', currency };
}

export function buildBookRange(
  account_id: string,
  livemode: boolean,
): { $gte: string; $lt: string } {
  const start = `${account_id}:${livemode ? 'live' : 'sandbox'}`;
  return { $gte: `${start}:`, $lt: `${start};` };
}

/** Kinds that credit, or return what an applied entry of the resource holds. */
const PENDING_KINDS: ReadonlySet<string> = new Set<EntryKind>([
  'payment_settled',
  'payment_held',
  'payment_dispute_won',
  'refund_settled',
  'refund_failed',
  'payout_captured',
  'payout_released',
  'payout_reversed',
  'payout_returned',
  'crypto_payment_held',
  'crypto_payment_credited',
  'crypto_settlement_captured',
  'crypto_settlement_released',
  'crypto_settlement_fee',
  'refund_held',
  'payout_held',
  'crypto_settlement_held',
]);

/**
 * Whether an entry stays pending until its book applies it: it lowers nothing that others draw on.
 * @see docs/ledger.md#pending-entries
 */
export function isPending({
  kind,
  lines,
}: {
  kind: string;
  lines: readonly { account: string; amount: unknown }[];
}): boolean {
  const isDrawnOn = (account: string) =>
    account !== SENT && /^(balances\.[^.]+\.available$|suspense\.|receivable\.)/.test(account);
  return (
    PENDING_KINDS.has(kind) &&
    lines.every(({ account, amount }) => !isDrawnOn(account) || Number(String(amount)) >= 0)
  );
}

/** Journal entry: immutable. */
export interface EntryDocument extends Partial<BalanceChange>, BankFacts {
  _id: string;
  book: string;
  kind: EntryKind;
  resource_id: string;
  step?: string;
  /** Time of the transition, ISO 8601, ms; after an outage long before the write. */
  at: string;
  /** Time of the write, ISO 8601, ms: orders a book. @see docs/ledger.md#checkpoints */
  written_at: string;
  /** Minor units, as 64-bit integers; units of an asset, as decimals of 34 digits. */
  lines: { account: string; amount: number | StoredInteger }[];
  value_date?: string;
  note?: EntryNote;
}

/** Facts by which a line of the bank's statement matches an entry on `clearing.{connector}`. */
export interface BankFacts {
  bank_reference?: string;
  /** Minor units as the statement has them: above 0 comes in. */
  bank_amount?: number | StoredInteger;
  /** Value date, else the day of `at`: `YYYY-MM-DD`. */
  bank_day?: string;
}

/**
 * State of a journal entry, which changes, under the entry's id. An entry that is neither pending
 * nor on any statement has none.
 */
export interface EntryStateDocument
  extends Pick<EntryDocument, '_id' | 'book' | 'written_at'>,
    Partial<Pick<EntryDocument, 'lines' | 'kind' | 'resource_id' | 'at'>>,
    BankFacts {
  /** Present, with `lines`, until it is applied. @see docs/ledger.md#pending-entries */
  pending?: true;
  /** Connector whose statement lacks it; a match makes it `cleared`. */
  uncleared?: string;
  cleared?: string;
  /** ISO 8601, ms. */
  cleared_at?: string;
  livemode?: boolean;
  /** ISO 4217. */
  currency?: string;
  /** The entry is one end of a transfer between own accounts. */
  transfer?: TransferEnd;
}

export interface BalanceChange {
  account_id: string;
  livemode: boolean;
  /** ISO 4217, or the book of an asset. */
  currency: string;
  balance_account: string;
  type: BalanceTransactionType;
  /** Position in the list, of the account's time of the write. @see src/domain/cursor.ts */
  position: string;
  fee?: number | bigint | StoredInteger;
}

export interface BookDocument {
  /** `{account_id}:{live|sandbox}:{currency}` */
  _id: string;
  account_id: string;
  livemode: boolean;
  currency: string;
  balances?: Record<string, { available?: number | bigint; reserved?: number | bigint }>;
  /** By balance account and day from which it can be used. */
  due?: Record<string, Record<string, number>>;
  /** Keyed by connector; in a bank book, the balance itself. */
  clearing?: Record<string, number> | number;
  cash?: number;
  expense?: Record<string, number>;
  transit?: Record<string, number>;
  income?: Record<string, number>;
  external?: Record<string, number>;
  /** In the service's own book. */
  platform?: Record<string, number>;
  suspense?: Record<string, number>;
  receivable?: Record<string, number>;
}
