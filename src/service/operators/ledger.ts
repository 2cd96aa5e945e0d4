import type { MongoClient } from 'mongodb';
import { ServiceError } from '../../domain/errors';
import {
  compareCheckpoints,
  listLastCheckpoints,
  type StoredCheckpoint,
} from '../../ledger-check/checkpoints';
import { type Verification, type VerifyOptions, verifyLedger } from '../../ledger-check/verify';
import { createLedgerCheckStore } from '../../store/metrics';

export { type StoredCheckpoint, StoredCheckpoints } from '../../ledger-check/checkpoints';
export { CHECKS } from '../../ledger-check/compare';
export { readTrialBalance, type TrialBalance } from '../../ledger-check/trial-balance';
export type { Verification } from '../../ledger-check/verify';

/**
 * Records a verification of all books for the metrics.
 * @param client has a long socket timeout
 * @throws ServiceError `book_not_found`
 */
export async function checkLedger(
  client: MongoClient,
  database: string,
  options: VerifyOptions & { now: () => Date; against?: readonly StoredCheckpoint[] },
): Promise<Verification> {
  const { book, now, against = [] } = options;
  const verification = await verifyLedger(client, database, options);
  const changed = await compareCheckpoints(client.db(database), against);
  verification.differences.unshift(...changed);
  verification.differences_total += changed.length;
  const { books, postings, differences_total } = verification;
  if (book === undefined) {
    const checks = createLedgerCheckStore(client.db(database));
    await checks.note(now().toISOString(), differences_total, options.full === true);
  } else if (books + postings === 0) {
    throw new ServiceError(
      'book_not_found',
      `There is no book ${book}, and no journal entry in it.`,
    );
  }
  return verification;
}

/** Returns what should be stored where nobody can change it. */
export function listHeads(client: MongoClient, database: string): Promise<StoredCheckpoint[]> {
  return listLastCheckpoints(client.db(database));
}
