import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { ServiceError } from '../../domain/errors';
import { createStores, ensureIndexes, missingIndexes } from '../../store';
import { missingAttributes, registerAttributes } from '../../temporal/attributes';
import { findConfigFault } from '../../temporal/fault';

export interface MigrateDeps {
  /** Needs a connection without a socket timeout. */
  db: Db;
  temporal: Client;
  progress: (line: string) => void;
}

/**
 * Creates missing indexes, validators (among the indexes) and search attributes. Safe to interrupt and repeat.
 * @param dryRun only lists them
 * @throws ServiceError `search_attributes_refused` with the commands that register them
 */
export async function migrate({ db, temporal, progress }: MigrateDeps, dryRun: boolean) {
  const stores = createStores(db);
  const { unique, others, validators } = await missingIndexes(stores);
  const indexes = [...unique, ...validators.map((name) => `${name}.validator`), ...others];
  const where = { connection: temporal.connection, namespace: temporal.options.namespace };
  if (dryRun) return { indexes, search_attributes: await missingAttributes(where) };
  if (indexes.length > 0) progress(`creating the indexes ${indexes.join(', ')}`);
  await ensureIndexes(stores);
  try {
    return { indexes, search_attributes: await registerAttributes(where) };
  } catch (error) {
    const fault = findConfigFault(error);
    throw fault === undefined
      ? error
      : new ServiceError('search_attributes_refused', fault.message);
  }
}
