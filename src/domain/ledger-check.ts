export const LEDGER_CHECK_WORKFLOW = 'ledgerCheck';

/** Result of a scheduled `ledger verify`. */
export interface LedgerCheckResult {
  /** Whether it read everything behind the checkpoints again. */
  full: boolean;
  books: number;
  postings: number;
  differences: number;
  /** First of them, as text. */
  named: string[];
}
