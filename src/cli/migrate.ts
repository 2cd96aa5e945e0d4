import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { createStores, ensureIndexes, missingIndexes } from '../store';
import { makeAttributes, missingAttributes } from '../temporal/attributes';
import { configFaultOf } from '../temporal/fault';
import { CliFailure } from './failure';

export interface MigrateDeps {
  /** Database over a connection without a time-out of sockets. */
  db: Db;
  temporal: Client;
  progress: (line: string) => void;
}

/** Names of what was missing, in the order of their making. */
export interface Migration {
  indexes: string[];
  search_attributes: string[];
}

/**
 * Makes the indexes and search attributes that are missing; it may be cut short and run again.
 * @param dryRun only finds them
 * @throws CliFailure `search_attributes_refused` with the commands that register them
 */
export async function migrate(
  { db, temporal, progress }: MigrateDeps,
  dryRun: boolean,
): Promise<Migration> {
  const stores = createStores(db);
  const { unique, others } = await missingIndexes(stores);
  const indexes = [...unique, ...others];
  const where = { connection: temporal.connection, namespace: temporal.options.namespace };
  if (dryRun) return { indexes, search_attributes: await missingAttributes(where) };
  if (indexes.length > 0) progress(`making the indexes ${indexes.join(', ')}`);
  await ensureIndexes(stores);
  try {
    return { indexes, search_attributes: await makeAttributes(where) };
  } catch (error) {
    const fault = configFaultOf(error);
    throw fault === undefined ? error : new CliFailure('search_attributes_refused', fault.message);
  }
}
