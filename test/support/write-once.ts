import type { ClientSession, MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { type NewEntry, operationId } from '../../src/ledger/entries';
import type { Stores } from '../../src/store';
import { retryUntilDone } from './eventually';

/**
 * Writes in a transaction, and again where a busy machine ends it.
 * @param write writes the same ids each time
 * @param isWritten whether an earlier try has written all of it, whose answer was lost
 */
export async function writeOnce(
  mongo: MongoClient,
  write: (session: ClientSession) => Promise<unknown>,
  isWritten: () => Promise<boolean>,
): Promise<void> {
  await retryUntilDone(async () => {
    try {
      await inTransaction(mongo, write);
    } catch (error) {
      if (!isDuplicateKey(error) || !(await isWritten())) throw error;
    }
  });
}

export async function postOnce(
  { mongo, stores: { ledger } }: { mongo: MongoClient; stores: Pick<Stores, 'ledger'> },
  entry: NewEntry,
): Promise<void> {
  const isPosted = async () => (await ledger.findEntry(operationId(entry))) !== null;
  await writeOnce(mongo, (session) => ledger.post(entry, session), isPosted);
}
