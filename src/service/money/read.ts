import { findUncutRange } from '../../domain/cursor';
import {
  buildRefusal,
  notFound,
  Refusal,
  type ResourceNoun,
  unavailable,
} from '../../domain/errors';
import { MAIN_BALANCE } from '../../domain/money/money';
import type { BalanceRow, Receivable } from '../../ledger/locks';
import type { ListFilter } from '../../store/list';
import { createProof } from '../../store/statements';
import type { MerchantDeps, Owner, ServiceDeps } from '../access';
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

/** Newest first. @throws Refusal 400 `invalid_cursor` */
export async function listPage<D extends { position: string }>(
  store: Listable<D>,
  { account_id, livemode }: Owner,
  { limit, created_before, ...narrowing }: PageQuery,
  only: object = {},
): Promise<Page<D>> {
  const owner = { account_id, livemode, ...only, ...narrowing };
  const list = (range: Partial<ListFilter>) => store.list({ ...owner, limit: limit + 1, ...range });
  const found = await list({ before: await readCursor(created_before, list) });
  return toPage(found, limit, ({ position }) => position);
}

/**
 * @returns the position before which a page lists
 * @throws Refusal 400 `invalid_cursor` for what may be a cut cursor, which would skip rows
 * @see docs/api.md#cancel-read-list
 */
export async function readCursor(
  created_before: string | undefined,
  list: (range: { after: string; until: string; limit: number }) => Promise<unknown[]>,
): Promise<string | undefined> {
  const range = created_before === undefined ? undefined : findUncutRange(created_before);
  if (range === undefined) return created_before;
  const { position, rowsMin, ...bounds } = range;
  const rows = await list({ ...bounds, limit: rowsMin });
  if (rows.length < rowsMin) return position;
  const message =
    'has fewer than nine fractional digits, and rows were made within the last of them: send ' +
    'a next_cursor as the text it is, unparsed, and a time of your own with nine digits';
  const details = [{ code: 'invalid_cursor', field: 'created_before', message }] as const;
  throw new Refusal('invalid_cursor', `created_before: ${message}`, { details });
}

export type { BalanceRow, Receivable } from '../../ledger/locks';

export interface ProvedBalance extends BalanceRow {
  /** Day until which the banks' statements prove it: `YYYY-MM-DD`. */
  proved_until: string | null;
}

/**
 * Reads also `main` where it never held money of a currency, and a debt is on it.
 * @see docs/statements.md#what-is-proved
 */
export async function readProvedBalances(
  { stores }: Pick<ServiceDeps, 'stores'>,
  { account_id, livemode }: Owner,
): Promise<{ balances: ProvedBalance[]; receivables: Receivable[] }> {
  const read = await stores.ledger.balancesAndReceivables(account_id, livemode);
  const readProof = createProof(stores, livemode);
  const owing = read.receivables.flatMap(({ currency }): BalanceRow[] => {
    const isMain = (row: BalanceRow) =>
      row.balance_account === MAIN_BALANCE && row.currency === currency;
    if (read.balances.some(isMain)) return [];
    return [{ balance_account: MAIN_BALANCE, currency, available: 0, reserved: 0 }];
  });
  const balances: ProvedBalance[] = [];
  for (const row of [...read.balances, ...owing]) {
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
