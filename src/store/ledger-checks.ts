import type { Db } from 'mongodb';

/** Result of the last verification of all books. */
export interface LedgerCheck {
  _id: 'last';
  /** ISO 8601 */
  checked_at: string;
  differences: number;
}

export function createLedgerCheckStore(db: Db) {
  const checks = db.collection<LedgerCheck>('ledger_checks');
  return {
    note: (checked_at: string, differences: number) =>
      checks.updateOne({ _id: 'last' }, { $set: { checked_at, differences } }, { upsert: true }),
    last: () => checks.findOne({ _id: 'last' }),
  };
}
