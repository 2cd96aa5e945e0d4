import { randomBytes } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { type AuditedAct, type AuditFacts, assertNoSecret } from '../domain/audit-log';
import type { Actor, AuditLogStore } from './audit-log';

/** Change that is to be kept. */
export interface Change {
  act: AuditedAct;
  /** Null where it concerns the service and no account. */
  account_id: string | null;
  /** Null where it concerns both environments. */
  livemode: boolean | null;
  /** Id of what is changed. */
  target: string | null;
  before?: AuditFacts | null;
  after?: AuditFacts | null;
}

/**
 * Adds a line to the audit log. In the session of the change both are written or none. A change that
 * MongoDB does not make gets its line before it is asked for, so that none is made without one.
 * @throws Error when a value has the form of a secret
 */
export type Audit = (change: Change, session?: ClientSession) => Promise<void>;

/** Binds the audit log to the one who acts; every door writes through it. */
export function auditBy(
  { stores, now }: { stores: { auditLog: Pick<AuditLogStore, 'add'> }; now: () => Date },
  actor: Actor,
): Audit {
  return async ({ before = null, after = null, ...change }, session) => {
    assertNoSecret(before);
    assertNoSecret(after);
    const at = now().toISOString();
    const _id = `${at}_${randomBytes(8).toString('hex')}`;
    await stores.auditLog.add({ _id, at, ...change, actor, before, after }, session);
  };
}
