import { MongoServerError } from 'mongodb';
import { reasonOf, StackFailure } from '../src/os/failure';
import { beginIndexes } from '../src/store';
import type { Progress } from './terminal';

/** Code of the server's refusal to a user who may not. */
const UNAUTHORIZED = 13;

/**
 * Makes what the processes only check: the indexes that they can't begin without; others of large
 * collections are built while they are at work.
 * @throws StackFailure when one that must be unique can't be made
 */
export async function prepareMongo(
  uri: string,
  database: string,
  progress: Pick<Progress, 'line'>,
): Promise<void> {
  const log = {
    info: (line: string) => progress.line(`MongoDB: ${line}`),
    warn: ({ err }: { err?: unknown }, line: string) =>
      progress.line(`MongoDB: ${line}: ${reasonOf(err)}`),
  };
  try {
    await beginIndexes({ uri, database }, log);
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error;
    if (error.code !== UNAUTHORIZED) {
      throw new StackFailure(`An index of ${database} can't be made: ${reasonOf(error)}`);
    }
    // The processes check whether all are there.
    progress.line('MongoDB: the user of MONGODB_URI may not make indexes (`migrate` does)');
  }
}
