import type { Collection, Document } from 'mongodb';
import { readIndexNames } from '../base/mongo-indexes';
import { ServiceError } from '../domain/errors';

const VERSION_1_INDEX = 'clear_payer';

/** @throws ServiceError `version_1_data` when version 1 filled the database */
export async function refuseVersion1<D extends Document>(payments: Collection<D>): Promise<void> {
  if (!(await readIndexNames(payments)).has(VERSION_1_INDEX)) return;
  throw new ServiceError(
    'version_1_data',
    `The database ${payments.dbName} holds data of version 1, which version 2 does not read. ` +
      'Set MONGODB_DB to another name: version 2 starts over.',
  );
}
