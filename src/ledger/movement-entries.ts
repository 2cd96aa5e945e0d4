import { MAIN_BALANCE } from '../domain/account/balance-account';
import { parseBookCurrency } from '../domain/crypto/assets';
import { computeRest, type Movement, type Resolution } from '../domain/movement/movement';
import { type NewEntry, operationId } from './entries';
import { ENTRY_LINES } from './entry-lines';
import { type BookingTime, buildEntry, type Owned } from './resource-entries';

/** Kinds whose movements are in the register. */
export type MovingKind = 'payment' | 'refund' | 'payout' | 'crypto_settlement';

type Owner = Omit<Owned, 'bank_reference'> & { balance_account?: string };

/** Entry with its id, by which a movement names it. */
interface NamedEntry {
  id: string;
  entry: NewEntry;
}

/** Builds the entry that holds a movement, in the book of the currency that moved. */
export function buildMovementHeld(
  kind: MovingKind,
  resource: Owner,
  movement: Omit<Movement, 'names' | 'reported_at' | 'sources' | 'reason'>,
  at: string,
): NamedEntry {
  const { id: step, direction, currency, bank_reference, value_date } = movement;
  const amount = toLineAmount(movement.amount, currency);
  const lines = ENTRY_LINES[`${kind}_held`](resource.connector, direction, amount);
  const owner = { ...resource, currency, bank_reference };
  const time = { at, value_date: value_date ?? undefined };
  const entry = { ...buildEntry(`${kind}_held`, owner, lines, time), step };
  return { id: operationId(entry), entry };
}

/** Builds the entry of the part that leaves suspense; each resolution has one. */
export function buildMovementResolved(
  kind: MovingKind,
  resource: Owner,
  movement: Omit<Movement, 'names' | 'reported_at' | 'sources' | 'reason'>,
  { as, amount, owed = 0 }: Pick<Resolution, 'as' | 'amount' | 'owed'>,
  { bank_reference, ...time }: BookingTime & { bank_reference?: string | undefined },
): NamedEntry {
  const { id, direction, currency, resolutions } = movement;
  const { connector, balance_account: balance = MAIN_BALANCE } = resource;
  const bearer = { as, connector, balance, owed };
  const units = toLineAmount(amount, currency);
  const lines = ENTRY_LINES[`${kind}_resolved`](direction, units, bearer);
  const owner = { ...resource, currency, bank_reference };
  const step = resolutions.length === 0 ? id : `${id}#${resolutions.length + 1}`;
  // What never moved is on no statement.
  const isWhole = BigInt(movement.amount) === BigInt(amount) && computeRest(movement) > 0n;
  const held = { kind: `${kind}_held`, resource_id: resource._id, step: id };
  const offsets = as === 'never_happened' && isWhole ? operationId(held) : undefined;
  const entry = { ...buildEntry(`${kind}_resolved`, owner, lines, time), step, offsets };
  return { id: operationId(entry), entry };
}

export function toLineAmount(units: number | string | bigint, currency: string): number | bigint {
  return parseBookCurrency(currency) === undefined ? Number(units) : BigInt(units);
}
