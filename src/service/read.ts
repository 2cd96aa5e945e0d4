import { buildRefusal, notFound, type ResourceNoun, unavailable } from '../domain/errors';
import type { BalanceRow, Receivable } from '../ledger/balance-rows';
import type { ListFilter } from '../store/list';
import type { MerchantDeps, Owner, ServiceDeps } from './deps';
import { toFirstRows } from './paging';

interface Findable<D> {
  find(id: string, account_id: string, livemode: boolean): Promise<D | null>;
}

interface Listable<D> {
  list(filter: ListFilter): Promise<D[]>;
}

/** Further fields of a query narrow the list. */
export interface PageQuery {
  limit: number;
  created_before?: string | undefined;
}

export interface Page<D> {
  rows: D[];
  has_more: boolean;
  next_cursor: string | null;
}

type ReadDeps = Pick<MerchantDeps, 'stores'>;

/** Creates a function that finds one resource of the caller. */
export function createGet<D>(
  noun: ResourceNoun,
  pickStore: (stores: MerchantDeps['stores']) => Findable<D>,
) {
  return ({ stores }: ReadDeps, caller: Owner, id: string): Promise<D> =>
    findResource(pickStore(stores), noun, caller, id);
}

/** Creates a function that lists resources of the caller, newest first. */
export function createList<D extends { position: string }>(
  pickStore: (stores: MerchantDeps['stores']) => Listable<D>,
) {
  return ({ stores }: ReadDeps, caller: Owner, query: PageQuery): Promise<Page<D>> =>
    listPage(pickStore(stores), caller, query);
}

/** @throws Refusal 404, also for an id of another caller */
export async function findResource<D>(
  store: Findable<D>,
  noun: ResourceNoun,
  { account_id, livemode }: Owner,
  id: string,
): Promise<D> {
  const document = await store.find(id, account_id, livemode);
  if (document === null) throw buildRefusal(notFound(noun));
  return document;
}

/**
 * Finds the resource that a request has created.
 * @throws Refusal 503 when the database has lost it, most likely after a restore: its key stays
 *   reserved, so no retry creates a second resource
 */
export async function findCreated<D>(
  store: Findable<D>,
  noun: ResourceNoun,
  { account_id, livemode }: Owner,
  id: string,
): Promise<D> {
  const document = await store.find(id, account_id, livemode);
  if (document !== null) return document;
  const cause = new Error(`The workflow of ${noun} ${id} exists, but its document does not.`);
  throw unavailable('The outcome is unknown.', cause);
}

/** Lists documents of the caller, newest first. */
export async function listPage<D extends { position: string }>(
  store: Listable<D>,
  { account_id, livemode }: Owner,
  { limit, created_before: before, ...narrowing }: PageQuery,
  only: object = {},
): Promise<Page<D>> {
  const filter = { account_id, livemode, ...only, ...narrowing, before };
  // An extra row shows whether there is a next page.
  const { rows, has_more } = toFirstRows(await store.list({ ...filter, limit: limit + 1 }), limit);
  return { rows, has_more, next_cursor: has_more ? (rows.at(-1)?.position ?? null) : null };
}

export type { BalanceRow, Receivable } from '../ledger/balance-rows';

export async function readBalances(
  { stores }: Pick<ServiceDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<{ balances: BalanceRow[]; receivables: Receivable[] }> {
  const [balances, receivables] = await Promise.all([
    stores.ledger.balances(account_id, livemode),
    stores.ledger.receivables(account_id, livemode),
  ]);
  return { balances, receivables };
}
