import { describeError } from '../../../base/errors';
import { Contention } from '../../../base/mongo';
import { Refusal, ServiceError } from '../../../domain/errors';
import type { AuditedAct, AuditFacts } from '../../../domain/operators/audit-log';
import {
  type Actor,
  type Audit,
  type AuditLine,
  auditBy,
  type ChainedLine,
  type Change,
  type Origin,
  type Sign,
} from '../../../store/audit';
import type { UserDocument } from '../../../store/users';
import type { Owner, ServiceDeps } from '../../access';
import { notifyOfChange } from '../../merchants/mail/outbox';
import {
  type FirstRows,
  type ListPage,
  type ListQuery,
  type PageRequest,
  readPageBy,
  toFirstRows,
} from '../../paging';

export type { Actor, Audit, Origin } from '../../../store/audit';

export function auditAsUser(
  deps: Pick<ServiceDeps, 'stores' | 'now'>,
  { _id: user_id, email }: Pick<UserDocument, '_id' | 'email'>,
  origin: Partial<Origin> & { session?: string } = {},
): Audit {
  return auditAndNotify(deps, { via: 'dashboard', user_id, email, ...origin });
}

/** Mails the owners, too, in the session of the change. */
export function auditAndNotify(
  deps: Pick<ServiceDeps, 'stores' | 'now'>,
  actor: Actor,
  sign?: Sign,
): Audit {
  const audit = auditBy(deps, actor, sign);
  return async (change, session) => {
    await audit(change, session);
    if (session !== undefined) await notifyOfChange(deps, change, nameActor(actor), session);
  };
}

const PAGE_LINES = 50;

/** Leaves out an operator's name, host and reason. */
export interface MerchantLine
  extends Pick<AuditLine, '_id' | 'at' | 'act' | 'target' | 'before' | 'after'> {
  who: string;
}

const OPERATORS_OWN = ['operator', 'reason', 'why', 'requested_by', 'approved_by', 'approval_id'];

function nameActor(actor: Actor): string {
  if (actor.via === 'dashboard') return actor.email;
  if (actor.via === 'service') return 'the service';
  return actor.via === 'api' ? `${actor.key_id} (API)` : 'our operators';
}

function omitOwn(facts: AuditFacts | null): AuditFacts | null {
  if (facts === null) return null;
  return Object.fromEntries(
    Object.entries(facts).filter(([name]) => !OPERATORS_OWN.includes(name)),
  );
}

/** Newest first. */
export async function listAuditLines(
  { stores }: Pick<ServiceDeps, 'stores'>,
  owner: Owner,
  query: Pick<ListQuery, 'before' | 'after'> & { act: AuditedAct | undefined },
): Promise<ListPage<MerchantLine>> {
  const list = async (page: PageRequest) => {
    const lines = await stores.auditLog.list({
      ...owner,
      act: query.act,
      onlyChained: true,
      ...page,
    });
    const newest = page.after === undefined ? lines : lines.toReversed();
    return newest.map(({ _id, at, act, target, actor, before, after }): MerchantLine => {
      const line = { _id, at, act, target, who: nameActor(actor) };
      if (!['command_line', 'workflow'].includes(actor.via)) return { ...line, before, after };
      return { ...line, before: omitOwn(before), after: omitOwn(after) };
    });
  };
  return await readPageBy(({ _id }) => _id, query, list, PAGE_LINES);
}

interface OperatorQuery {
  /** Undefined: any. */
  account_id: string | undefined;
  livemode: boolean | undefined;
  /** ISO 8601. */
  since: string | undefined;
  limit: number;
}

/** Newest first. */
export async function listAllAuditLines(
  { stores }: Pick<ServiceDeps, 'stores'>,
  { limit, ...query }: OperatorQuery,
): Promise<FirstRows<ChainedLine>> {
  return toFirstRows(await stores.auditLog.list({ ...query, limit: limit + 1 }), limit);
}

/** An attempt fails after 5 s of write conflicts. */
const ATTEMPTS_MAX = 6;

/**
 * Performs an act outside MongoDB between two audit lines: `requested`, then `done`, the code of
 * the refusal, or `unknown`. If the process dies between the two, the log has only the first.
 * @param describe facts of the result for the second line; they may replace the outcome
 * @throws errors of the act; ServiceError `audit_line_missing` when it succeeded without that line
 */
export async function withAuditLine<Result>(
  audit: Audit,
  change: Change,
  act: () => Promise<Result>,
  describe: (result: Result) => AuditFacts = () => ({}),
): Promise<Result> {
  await auditRequest(audit, change);
  return await withOutcomeLine(audit, change, act, describe);
}

export async function auditRequest(audit: Audit, change: Change): Promise<void> {
  await audit({ ...change, after: { ...change.after, outcome: 'requested' } });
}

/** Performs an act that `auditRequest` has logged. @see withAuditLine */
export async function withOutcomeLine<Result>(
  audit: Audit,
  change: Change,
  act: () => Promise<Result>,
  describe: (result: Result) => AuditFacts = () => ({}),
): Promise<Result> {
  const write = (facts: AuditFacts) => audit({ ...change, after: { ...change.after, ...facts } });
  let result: Result;
  try {
    result = await act();
  } catch (error) {
    const isRefused = error instanceof ServiceError || error instanceof Refusal;
    // The caller must get the act's error, even when the line cannot be written.
    await write({ outcome: isRefused ? error.code : 'unknown' }).catch(() => undefined);
    throw error;
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      await write({ outcome: 'done', ...describe(result) });
      return result;
    } catch (error) {
      if (error instanceof Contention && attempt < ATTEMPTS_MAX) continue;
      const message = `The act is complete, but the audit log says only that it was requested: ${describeError(error)}`;
      throw new ServiceError('audit_line_missing', message);
    }
  }
}
