import { randomUUID } from 'node:crypto';
import type { Db, Document } from 'mongodb';
import { eventsOfPayment, settledPayment } from '../ledger/fill';

/** Minor units of each payment. */
const AMOUNT = 1_000;
const BATCH = 1_000;

/** Makes authorised payments, in bulk, of merchants in turn. */
export async function makeAuthorized(db: Db, payments: number, merchants: number): Promise<void> {
  const accounts = Array.from({ length: merchants }, () => `acct_${randomUUID()}`);
  // A millisecond for each, since two of one may meet in a list.
  const began = Date.now() - payments;
  const timeOf = (n: number) => new Date(began + n).toISOString();
  const all = Array.from({ length: payments }, (_, n) => ({
    ...settledPayment(accounts[n % merchants] ?? '', timeOf(n), AMOUNT),
    ...({ status: 'authorized', version: 3, settled_at: null } as const),
  }));
  for (let from = 0; from < payments; from += BATCH) {
    const rows = all.slice(from, from + BATCH);
    const events = rows.flatMap((payment) => eventsOfPayment(payment).slice(0, 2));
    await insert(db, 'payments', rows);
    await insert(db, 'events', events);
  }
}

async function insert<D extends Document>(db: Db, collection: string, rows: D[]): Promise<void> {
  await db.collection(collection).insertMany(rows);
}
