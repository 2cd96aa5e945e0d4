import type { Collection, Db } from 'mongodb';

/** Outcome of the last time that all books were verified. */
export interface LedgerCheck {
  _id: 'last';
  /** ISO 8601 */
  checked_at: string;
  differences: number;
}

export function createLedgerCheckStore(db: Db) {
  const checks: Collection<LedgerCheck> = db.collection<LedgerCheck>('ledger_checks');
  return {
    note: (checked_at: string, differences: number) =>
      checks.updateOne({ _id: 'last' }, { $set: { checked_at, differences } }, { upsert: true }),
    last: () => checks.findOne({ _id: 'last' }),
  };
}
