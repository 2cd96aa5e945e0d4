import { ApplicationFailure } from '@temporalio/activity';
import { MongoNetworkError } from 'mongodb';
import { Contention } from '../../src/base/mongo';

const TRIES = 20;

/** Repeats an attempt that failed by write conflicts or by a stall of the server. */
export async function retryTransient<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isTransient(error) || left === 1) throw error;
    }
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof ApplicationFailure) return (error.nextRetryDelay ?? undefined) !== undefined;
  return error instanceof Contention || error instanceof MongoNetworkError;
}
