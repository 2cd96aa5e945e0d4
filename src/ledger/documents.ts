import type { BalanceTransactionType } from '../domain/account/balance-transaction';
import type { EntryKind, EntryNote } from './entries';
import type { StoredInteger } from './integers';

/** Journal entry, which never changes but for `open`. Its lines sum to zero. */
export interface EntryDocument extends Partial<BalanceChange> {
  _id: string;
  book: string;
  kind: EntryKind;
  resource_id: string;
  step?: string;
  /** Time of the transition, ISO 8601, ms; after an outage long before the write. */
  at: string;
  /** Time of the write, ISO 8601, ms: the order within a book. @see docs/ledger.md#checkpoints */
  written_at: string;
  /** Minor units, as 64-bit integers; units of an asset, as decimals of 34 digits. */
  legs: { account: string; amount: number | StoredInteger }[];
  value_date?: string;
  note?: EntryNote;
  /** Present until it is applied. @see docs/ledger.md#pending-entries */
  open?: true;
}

/** Fields by which a merchant lists an entry that changes what a balance has available. */
export interface BalanceChange {
  account_id: string;
  livemode: boolean;
  /** ISO 4217, or the book of an asset. */
  currency: string;
  balance_account: string;
  type: BalanceTransactionType;
  /** Position in the list, of the time of the write. @see src/domain/cursor.ts */
  position: string;
  /** Part of the change that is a fee; absent without one. */
  fee?: number | bigint | StoredInteger;
}

/** Balances of one account, environment and currency, by the paths of the entry lines. */
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
