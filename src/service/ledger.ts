import type { MongoClient } from 'mongodb';
import { ServiceError } from '../domain/errors';
import { type Verification, type VerifyOptions, verifyLedger } from '../ledger-check/verify';
import { createLedgerCheckStore } from '../store/metrics';

export { CHECKS } from '../ledger-check/compare';
export type { Verification } from '../ledger-check/verify';

/**
 * Verifies the ledger, and records a verification of all books for the metrics.
 * @param client has a long socket timeout
 * @throws ServiceError `book_not_found`
 */
export async function checkLedger(
  client: MongoClient,
  database: string,
  options: VerifyOptions & { now: () => Date },
): Promise<Verification> {
  const { book, now } = options;
  const verification = await verifyLedger(client, database, options);
  const { books, postings, differences_total } = verification;
  if (book === undefined) {
    const checks = createLedgerCheckStore(client.db(database));
    await checks.note(now().toISOString(), differences_total);
  } else if (books + postings === 0) {
    throw new ServiceError(
      'book_not_found',
      `There is no book ${book}, and no journal entry in it.`,
    );
  }
  return verification;
}
