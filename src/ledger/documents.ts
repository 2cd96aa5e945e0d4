import type { BalanceTransactionType } from '../domain/money/money';
import type { EntryKind, EntryNote, TransferEnd } from './entries';
import type { StoredInteger } from './integers';

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
  /** Keyed by connector; in a bank book, the balance itself. */
  /** By balance account and day from which it can be used. */
  due?: Record<string, Record<string, number>>;
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
