import type { AuditedAct } from '../domain/account/audit-log';
import { type Audit, auditBy } from '../store/audit';
import type { AuditLine, ChainedLine } from '../store/audit-log';
import type { UserDocument } from '../store/users';
import type { Owner, ServiceDeps } from './deps';
import { type FirstRows, type ListPage, type PageRequest, readPageBy, toFirstRows } from './paging';

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
): Promise<ListPage<AuditLine>> {
  const list = async (page: PageRequest) => {
    const lines = await stores.auditLog.list({ ...owner, act: query.act, ...page });
    return page.after === undefined ? lines : lines.toReversed();
  };
  return await readPageBy(({ _id }) => _id, query, list, PAGE_LINES);
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
