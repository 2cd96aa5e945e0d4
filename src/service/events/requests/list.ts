import { RawJson } from '../../../base/json';
import { buildPosition } from '../../../domain/cursor';
import { REQUEST_OUTCOMES } from '../../../domain/request/outcome';
import type { RequestDocument } from '../../../store/requests';
import type { Owner, ServiceDeps } from '../../deps';
import { listPage, type Page, type PageQuery } from '../../money/read';
import { type ListQuery, readPage, singleRow } from '../../paging';

export type { RequestDocument } from '../../../store/requests';

type ListDeps = Pick<ServiceDeps, 'stores' | 'now'>;

/** @see docs/api.md#requests */
export const REQUEST_DAYS = 7;
const DAY_MS = 86_400_000;

/** Newest first. */
export function listRequests(
  deps: ListDeps,
  caller: Owner,
  query: PageQuery,
): Promise<Page<RequestDocument>> {
  return listPage(deps.stores.requests, caller, query, { since: getStart(deps) });
}

export async function searchRequests(deps: ListDeps, owner: Owner, query: ListQuery) {
  const { search, status } = query;
  if (search !== '') return singleRow(await findRequest(deps, owner, search));
  const outcome = REQUEST_OUTCOMES.find((one) => one === status);
  const filter = { ...owner, outcome, since: getStart(deps) };
  return await readPage(query, (page) => deps.stores.requests.list({ ...filter, ...page }));
}

export async function findRequest(
  deps: ListDeps,
  { account_id, livemode }: Owner,
  id: string,
): Promise<RequestDocument | null> {
  const request = await deps.stores.requests.find(id, account_id, livemode);
  return request !== null && request.position >= getStart(deps) ? request : null;
}

/** The database deletes older rows, but not at once. */
function getStart({ now }: Pick<ListDeps, 'now'>): string {
  return buildPosition(now().getTime() - REQUEST_DAYS * DAY_MS, 0);
}

/** @see docs/api.md#requests */
export function presentRequest(request: RequestDocument) {
  const { _id, method, path, status, code, idempotency_key, key_id, duration_ms } = request;
  return {
    request_id: _id,
    object: 'request',
    ...{ method, path, status, code, idempotency_key, key_id, duration_ms },
    created_at: request.created_at,
    request_body: request.request_body === null ? null : new RawJson(request.request_body),
    response_body: request.response_body === null ? null : new RawJson(request.response_body),
  };
}
