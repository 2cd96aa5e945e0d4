import { createHash, randomBytes } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { type AuditedAct, type AuditFacts, assertNoSecret } from '../domain/account/audit-log';
import { omitUndefined } from '../domain/defined';
import type { Actor, AuditLine, AuditLogStore } from './audit-log';

export interface Change {
  act: AuditedAct;
  account_id: string | null;
  /** Null: both environments. */
  livemode: boolean | null;
  target: string | null;
  before?: AuditFacts | null;
  after?: AuditFacts | null;
}

/**
 * Adds a line in the session of the change, so that both are written or none. Outside MongoDB, an
 * act on money is logged with its outcome, and any other before it.
 * @throws Error when a value has the form of a secret
 */
export type Audit = (change: Change, session?: ClientSession) => Promise<void>;

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

/** Adds nothing when an earlier attempt did. @param once identity of the change */
export async function auditOnce(
  { auditLog }: { auditLog: Pick<AuditLogStore, 'add' | 'has'> },
  { change, actor, once }: { change: Change; actor: Actor; once: { id: string; at: string } },
  session: ClientSession,
): Promise<void> {
  const { id, at } = once;
  const _id = `${at}_${createHash('sha256').update(id).digest('hex').slice(0, 16)}`;
  if (await auditLog.has(_id, session)) return;
  await auditLog.add(buildLine(change, actor, { _id, at }), session);
}

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
