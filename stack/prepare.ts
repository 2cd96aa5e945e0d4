import { MongoServerError } from 'mongodb';
import { describeError, StackFailure } from '../src/base/failure';
import { connectToBuild } from '../src/base/mongo-indexes';
import { ServiceError } from '../src/domain/errors';
import { createStores, ensureIndexes } from '../src/store';
import type { Progress } from './terminal';

/** Code of the server's refusal to a user who may not. */
const UNAUTHORIZED = 13;

/**
 * Makes the indexes, which the processes only check.
 * @throws StackFailure when one can't be made, or version 1 filled the database
 */
export async function prepareMongo(
  uri: string,
  database: string,
  progress: Pick<Progress, 'line'>,
): Promise<void> {
  const mongo = await connectToBuild(uri);
  try {
    await ensureIndexes(createStores(mongo.db(database)));
  } catch (error) {
    if (error instanceof ServiceError) throw new StackFailure(error.message);
    if (!(error instanceof MongoServerError)) throw error;
    if (error.code !== UNAUTHORIZED) {
      throw new StackFailure(`An index of ${database} can't be made: ${describeError(error)}`);
    }
    // The processes check whether all are there.
    progress.line('MongoDB: the user of MONGODB_URI may not make indexes (`migrate` does)');
  } finally {
    await mongo.close();
  }
}
