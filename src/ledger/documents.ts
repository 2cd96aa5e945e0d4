import type { EntryKind, EntryNote } from './entries';
import type { StoredInteger } from './integers';

/** Transaction of the ledger; but for `open`, never changed. Its legs sum to zero. */
export interface EntryDocument {
  /** `{kind}:{resource_id}`, and the step where there are several: each is posted once. */
  _id: string;
  book: string;
  kind: EntryKind;
  resource_id: string;
  /** Transaction of a deposit. */
  step?: string;
  /** Time of the move, ISO 8601, ms; after an outage it may be long before the write. */
  at: string;
  /**
   * Time of the write by its process's clock, ISO 8601, ms: the order of entries within a book.
   * @see docs/ledger.md#checkpoints
   */
  written_at: string;
  /** Minor units, as 64-bit integers; units of a coin, as decimals of 34 digits. */
  legs: { account: string; amount: number | StoredInteger }[];
  /** Day on which the bank books it, where it says so. */
  value_date?: string;
  /** Operator who asked for it, and the reason. */
  note?: EntryNote;
  /** Present until its book has taken it in. @see docs/ledger.md#pending-entries */
  open?: true;
}

/** Kept balances of one merchant account, environment and currency, by the paths of its legs. */
export interface BookDocument {
  /** `{account_id}:{live|sandbox}:{currency}` */
  _id: string;
  account_id: string;
  livemode: boolean;
  currency: string;
  balances?: Record<string, { available?: number | bigint; reserved?: number | bigint }>;
  clearing?: Record<string, number>;
  transit?: Record<string, number>;
  income?: Record<string, number>;
  external?: Record<string, number>;
  suspense?: Record<string, number>;
  receivable?: Record<string, number>;
}
