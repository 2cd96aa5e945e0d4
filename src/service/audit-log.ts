import type { AuditedAct } from '../domain/account/audit-log';
import { type Audit, auditBy } from '../store/audit';
import type { AuditLine, ChainedLine } from '../store/audit-log';
import type { UserDocument } from '../store/users';
import type { Owner, ServiceDeps } from './deps';
import { type FirstRows, toFirstRows } from './paging';

export type { Audit } from '../store/audit';
export type { Actor, AuditLine } from '../store/audit-log';

export function auditAsUser(
  deps: Pick<ServiceDeps, 'stores' | 'now'>,
  { _id: user_id, email }: Pick<UserDocument, '_id' | 'email'>,
): Audit {
  return auditBy(deps, { door: 'dashboard', user_id, email });
}

interface AuditLogQuery {
  act: AuditedAct | undefined;
  /** At most one of the two is set. */
  before: string | undefined;
  after: string | undefined;
}

const PAGE_LINES = 50;

/** Reads a page, newest first, with the cursors of the adjacent pages. */
export async function listAuditLines(
  { stores }: Pick<ServiceDeps, 'stores'>,
  owner: Owner,
  query: AuditLogQuery,
): Promise<{ lines: AuditLine[]; older: string | undefined; newer: string | undefined }> {
  const { before, after } = query;
  const results = await stores.auditLog.list({ ...owner, ...query, limit: PAGE_LINES + 1 });
  const page = results.slice(0, PAGE_LINES);
  const hasMore = results.length > PAGE_LINES;
  const lines = after === undefined ? page : page.toReversed();
  const isFirst = after === undefined ? before === undefined : !hasMore;
  return {
    lines,
    newer: isFirst ? undefined : lines[0]?._id,
    older: after !== undefined || hasMore ? lines.at(-1)?._id : undefined,
  };
}

interface OperatorQuery {
  /** Any account, environment and time when undefined. */
  account_id: string | undefined;
  livemode: boolean | undefined;
  /** ISO 8601. */
  since: string | undefined;
  limit: number;
}

/** Lists lines of all accounts and of the service, newest first. */
export async function listAllAuditLines(
  { stores }: Pick<ServiceDeps, 'stores'>,
  { limit, ...query }: OperatorQuery,
): Promise<FirstRows<ChainedLine>> {
  return toFirstRows(await stores.auditLog.list({ ...query, limit: limit + 1 }), limit);
}
