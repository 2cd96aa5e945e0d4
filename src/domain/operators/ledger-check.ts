export const LEDGER_CHECK_WORKFLOW = 'ledgerCheck';

/** Result of a scheduled `ledger verify`. */
export interface LedgerCheckResult {
  /** Checkpointed entries were read again, too. */
  full: boolean;
  books: number;
  postings: number;
  differences: number;
  /** First of them, as text. */
  named: string[];
}
