import { buildRefusal, notFound, type ResourceNoun, unavailable } from '../../domain/errors';
import type { BalanceRow, Receivable } from '../../ledger/balance-rows';
import type { ListFilter } from '../../store/list';
import { createProof } from '../../store/proof';
import type { MerchantDeps, Owner, ServiceDeps } from '../deps';
import { type Page, toPage } from '../paging';

export type { Page } from '../paging';

interface Findable<D> {
  find(id: string, account_id: string, livemode: boolean): Promise<D | null>;
}

interface Listable<D> {
  list(filter: ListFilter): Promise<D[]>;
}

export interface PageQuery {
  limit: number;
  created_before?: string | undefined;
}

type ReadDeps = Pick<MerchantDeps, 'stores'>;

export function createGet<D>(
  noun: ResourceNoun,
  pickStore: (stores: MerchantDeps['stores']) => Findable<D>,
) {
  return ({ stores }: ReadDeps, caller: Owner, id: string): Promise<D> =>
    findResource(pickStore(stores), noun, caller, id);
}

/** Newest first. */
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
 * @throws Refusal 503 when the database has lost the created resource, most likely after a restore:
 * its key stays reserved, so no retry creates a second one
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

/** Newest first. */
export async function listPage<D extends { position: string }>(
  store: Listable<D>,
  { account_id, livemode }: Owner,
  { limit, created_before: before, ...narrowing }: PageQuery,
  only: object = {},
): Promise<Page<D>> {
  const filter = { account_id, livemode, ...only, ...narrowing, before };
  const found = await store.list({ ...filter, limit: limit + 1 });
  return toPage(found, limit, ({ position }) => position);
}

export type { BalanceRow, Receivable } from '../../ledger/balance-rows';

export interface ProvedBalance extends BalanceRow {
  /** Day until which the banks' statements prove it: `YYYY-MM-DD`. */
  proved_until: string | null;
}

/** @see docs/statements.md#what-is-proved */
export async function readProvedBalances(
  { stores }: Pick<ServiceDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<{ balances: ProvedBalance[]; receivables: Receivable[] }> {
  const read = await stores.ledger.balancesAndReceivables(account_id, livemode);
  const readProof = createProof(stores, livemode);
  const balances: ProvedBalance[] = [];
  for (const row of read.balances) {
    const { currency } = row;
    const proved_until = await readProof(read.connectors.get(currency) ?? [], currency);
    balances.push({ ...row, proved_until });
  }
  return { balances, receivables: read.receivables };
}

export async function readBalances(
  { stores }: Pick<ServiceDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<{ balances: BalanceRow[]; receivables: Receivable[] }> {
  const read = await stores.ledger.balancesAndReceivables(account_id, livemode);
  return { balances: read.balances, receivables: read.receivables };
}
