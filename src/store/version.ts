import type { Collection, Document } from 'mongodb';
import { readIndexNames } from '../base/mongo-indexes';
import { ServiceError } from '../domain/errors';

/** Index that every database of version 1 has, and no later one. */
const VERSION_1_INDEX = 'clear_payer';

/**
 * Refuses a database that version 1 filled.
 * @param payments its collection `payments`
 * @throws ServiceError `version_1_data`
 */
export async function refuseVersion1<D extends Document>(payments: Collection<D>): Promise<void> {
  if (!(await readIndexNames(payments)).has(VERSION_1_INDEX)) return;
  throw new ServiceError(
    'version_1_data',
    `The database ${payments.dbName} holds data of version 1, which version 2 does not read. ` +
      'Set MONGODB_DB to another name: version 2 starts over.',
  );
}
