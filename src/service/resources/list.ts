import type { Documents } from '../../lifecycles';
import type { ListFilter } from '../../store/resource';
import type { Owner, ServiceDeps } from '../deps';
import { type ListPage, type ListQuery, readPage, singleRow, toBounds } from '../paging';

export type { Documents } from '../../lifecycles';
export type { ResourceDocument } from '../../store/resource';

export type Kind = keyof Documents;

/** Field that a search matches, besides the id. */
const SEARCH_FIELDS = {
  payment: 'reference',
  refund: 'payment_id',
  payout: 'reference',
  crypto_payment: 'reference',
  crypto_settlement: 'transaction_id',
} as const satisfies Record<Kind, string>;

interface Filter extends Omit<ListFilter, 'limit'> {
  status?: string | undefined;
  method?: string | undefined;
}

interface Rows<D> {
  find(id: string, account_id: string, livemode: boolean): Promise<D | null>;
  list(filter: Filter & { limit: number }): Promise<D[]>;
  export(filter: Filter): AsyncIterable<D>;
  listNeedingAttention(account_id: string, livemode: boolean, limit: number): Promise<D[]>;
}

type ReadDeps = Pick<ServiceDeps, 'stores'>;

export function getRows<K extends Kind>({ stores }: ReadDeps, kind: K): Rows<Documents[K]> {
  const rows: { [Each in Kind]: Rows<Documents[Each]> } = {
    payment: stores.payments,
    refund: stores.refunds,
    payout: stores.payouts,
    crypto_payment: stores.crypto_payments,
    crypto_settlement: stores.crypto_settlements,
  };
  return rows[kind];
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Reads a page of resources. A search for an id finds that resource, or else those that refer to
 * it.
 */
export async function listResources<K extends Kind>(
  deps: ReadDeps,
  kind: K,
  owner: Owner,
  query: ListQuery,
): Promise<ListPage<Documents[K]>> {
  const rows = getRows(deps, kind);
  if (UUID.test(query.search)) {
    const { account_id, livemode } = owner;
    const match = await rows.find(query.search.toLowerCase(), account_id, livemode);
    if (match !== null) return singleRow(match);
  }
  const filter = buildFilter(kind, owner, query);
  return await readPage<Documents[K]>(query, (page) => rows.list({ ...filter, ...page }));
}

/** Reads all resources that a query selects, newest first. */
export function exportResources<K extends Kind>(
  deps: ReadDeps,
  kind: K,
  owner: Owner,
  query: ListQuery,
): AsyncIterable<Documents[K]> {
  return getRows(deps, kind).export(buildFilter(kind, owner, query));
}

function buildFilter(kind: Kind, owner: Owner, query: ListQuery): Filter {
  const { search, status, method } = query;
  const text = UUID.test(search) ? search.toLowerCase() : search;
  const searchFilter = search === '' ? {} : { [SEARCH_FIELDS[kind]]: text };
  return { ...owner, status, method, ...toBounds(query), ...searchFilter };
}
