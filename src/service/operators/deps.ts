import { hostname, userInfo } from 'node:os';
import type { MongoClient } from 'mongodb';
import { describeError } from '../../base/errors';
import { ServiceError } from '../../domain/errors';
import { followAuditKey, signAs } from '../../encryption/audit-keys';
import { createStores } from '../../store';
import type { Audit } from '../../store/audit';
import type { ServiceDeps, WriteDeps } from '../access';
import { auditAndNotify } from './audit/log';

export type ReadDeps = Pick<ServiceDeps, 'mongo' | 'stores' | 'now'> & {
  /** Key of the operator who runs the command, not verified yet. */
  operatorKey?: string | undefined;
};

/** @param keysDir has the key that signs what no operator's key does */
export function createReadDeps(
  mongo: MongoClient,
  db: string,
  { operatorKey, keysDir }: { operatorKey?: string | undefined; keysDir?: string | undefined } = {},
): ReadDeps {
  // Reads the file for each line: a command that adds none needs no key.
  const sign = (hash: string): string => {
    if (keysDir === undefined) {
      const message = 'KEYS_DIR is not set: its audit.command_line.json signs the audit log.';
      throw new ServiceError('keys_dir_missing', message);
    }
    try {
      return followAuditKey(keysDir, 'command_line')(hash);
    } catch (error) {
      throw new ServiceError('keys_dir_invalid', describeError(error));
    }
  };
  const stores = createStores(mongo.db(db), 0, sign);
  return { mongo, stores, now: () => new Date(), operatorKey };
}

/** @param operator whose key was verified */
export function auditAs(deps: ReadDeps, operator: string): Audit {
  const { operatorKey } = deps;
  const sign = operatorKey === undefined ? undefined : (hash: string) => signAs(operatorKey, hash);
  return auditAndNotify(deps, { via: 'command_line', ...getSystemUser(), operator }, sign);
}

/** Creates the indexes that acts need, too. */
export async function createOperatorDeps(deps: ReadDeps): Promise<WriteDeps> {
  // Before the first start, these collections do not exist.
  const { approvals, auditLog, connectorKeys, invitations, keys, operators } = deps.stores;
  const stores = [approvals, auditLog, connectorKeys, invitations, keys, operators];
  await Promise.all(stores.map((store) => store.ensureIndexes()));
  return { ...deps, audit: auditAndNotify(deps, { via: 'command_line', ...getSystemUser() }) };
}

export function getSystemUser(): { system_user: string; host: string } {
  const host = hostname();
  try {
    return { system_user: userInfo().username, host };
  } catch {
    // A container may run under a number without a name.
    return { system_user: String(process.getuid?.() ?? 'unknown'), host };
  }
}
