import { createHash, randomBytes } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { type AuditedAct, type AuditFacts, assertNoSecret } from '../domain/account/audit-log';
import { omitUndefined } from '../domain/defined';
import type { Actor, AuditLine, AuditLogStore } from './audit-log';

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

/** Identity of a change that may be written again: its line is added once. */
interface ChangeIdentity {
  id: string;
  /** ISO 8601, ms. */
  at: string;
}

/**
 * Adds a line to the audit log. In the session of the change both are written or none. Of a change that
 * MongoDB does not make, an act on money gets its line with its outcome, every other one before it.
 * @throws Error when a value has the form of a secret
 */
export type Audit = (change: Change, session?: ClientSession) => Promise<void>;

/** Binds the audit log to the one who acts; every door writes through it. */
export function auditBy(
  { stores, now }: { stores: { auditLog: Pick<AuditLogStore, 'add'> }; now: () => Date },
  actor: Actor,
): Audit {
  return async (change, session) => {
    const at = now().toISOString();
    const _id = `${at}_${randomBytes(8).toString('hex')}`;
    await stores.auditLog.add(buildLine(change, actor, { _id, at }), session);
  };
}

/** Adds a line in the session of its change, unless an earlier attempt has added it. */
export async function auditOnce(
  { auditLog }: { auditLog: Pick<AuditLogStore, 'add' | 'has'> },
  { change, actor, once: { id, at } }: { change: Change; actor: Actor; once: ChangeIdentity },
  session: ClientSession,
): Promise<void> {
  const _id = `${at}_${createHash('sha256').update(id).digest('hex').slice(0, 16)}`;
  if (await auditLog.has(_id, session)) return;
  await auditLog.add(buildLine(change, actor, { _id, at }), session);
}

/** @throws Error when a value has the form of a secret */
function buildLine(
  { before = null, after = null, ...change }: Change,
  actor: Actor,
  place: Pick<AuditLine, '_id' | 'at'>,
): AuditLine {
  assertNoSecret(before);
  assertNoSecret(after);
  const facts = { before: before && omitUndefined(before), after: after && omitUndefined(after) };
  return { ...place, ...change, actor, ...facts };
}
