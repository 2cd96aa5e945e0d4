import { computeRest, isInSuspense, type Movement, toUnits } from '../../domain/banks/movement';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import type { Stores } from '../../store';
import { type MovementDocument, type MovementFilter, toMovement } from '../../store/movements';
import { type Page, toPage } from '../paging';

interface ReadDeps {
  stores: Pick<Stores, 'movements'>;
}

/** Lists what is in suspense, the oldest first. */
export async function listHeld({ stores }: ReadDeps, resource_id: string): Promise<Movement[]> {
  return (await stores.movements.forResource(resource_id)).map(toMovement).filter(isInSuspense);
}

export interface MovementQuery extends Omit<MovementFilter, 'after'> {
  /** Last row of the page before. */
  after?: string | undefined;
  limit: number;
}

/**
 * Lists the oldest first.
 * @throws ServiceError `movement_not_found` when `after` is no id of a movement
 */
export async function listMovements(
  deps: ReadDeps,
  { after, limit, ...filter }: MovementQuery,
): Promise<Page<ShownMovement>> {
  const place = after === undefined ? undefined : await findMovement(deps, after);
  const found = await deps.stores.movements.list({ ...filter, after: place }, limit + 1);
  const { rows, ...page } = toPage(found, limit, ({ _id }) => _id);
  return { ...page, rows: rows.map(presentMovement) };
}

/** @throws ServiceError `movement_not_found` */
export async function findMovement({ stores }: ReadDeps, id: string): Promise<MovementDocument> {
  const movement = await stores.movements.get(id);
  if (movement !== null) return movement;
  throw new ServiceError('movement_not_found', `There is no movement ${id}.`);
}

export type ShownMovement = ReturnType<typeof presentMovement>;

/** @see docs/ledger.md#bank-movements */
export function presentMovement({ _id: id, currency, ...row }: MovementDocument) {
  const { connector, livemode, names, direction, amount, value_date, reported_at } = row;
  const { sources, resource, resource_id, state, reason, resolutions } = row;
  return {
    id,
    connector,
    livemode,
    account: null,
    names,
    identity: names[0] ?? id,
    direction,
    amount,
    ...(parseBookCurrency(currency) ?? { currency }),
    ...{ value_date, reported_at, sources, resource, resource_id, state, reason },
    resolution: resolutions.at(-1) ?? null,
    fee: row.fee ?? null,
    in_suspense: toUnits(row, computeRest(row)),
  };
}
