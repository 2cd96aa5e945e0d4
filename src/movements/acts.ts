import type { ClientSession } from 'mongodb';
import { deriveUuid } from '../base/ids';
import { type Direction, nameMovement, type Units } from '../domain/banks/movement';
import { parseBookCurrency } from '../domain/crypto/assets';
import { ServiceError } from '../domain/errors';
import { formatAmount } from '../domain/money/money';
import { type EntryNote, type NewEntry, operationId } from '../ledger/entries';
import { type ClearingScope, findClearing } from '../ledger/uncleared';
import type { Stores } from '../store';
import type { LineDocument } from '../store/statement-lines';

type Register = Pick<Stores, 'movements'>;

/** Entries that operators post against `clearing.CONNECTOR`, without a resource. */
const ACTED = /^(funded|adjusted|platform_posted):/;

const nameAct = (operation_id: string) => `act:${operation_id}`;

/**
 * Records what an operator says that a bank moved, in the transaction that has posted its entry;
 * nothing where the entry moves no money at a bank.
 * @throws ServiceError `bank_reference_used`
 */
export async function recordActed(
  stores: Pick<Stores, 'bankAccounts' | 'ledger' | 'movements' | 'statements'>,
  entry: NewEntry,
  session: ClientSession,
): Promise<void> {
  const { account_id, livemode, currency, at, value_date = null } = entry;
  const { connector, amount: units } = findClearing(entry.lines) ?? {};
  if (connector === undefined || units === undefined) return;
  const size = units < 0 ? -units : units;
  const moved: Moved = {
    ...{ connector, livemode, currency, bank_reference: entry.bank_reference || null },
    direction: units < 0 ? 'in' : 'out',
    amount: typeof size === 'bigint' ? String(size) : size,
  };
  const operation_id = operationId(entry);
  const name = nameAct(operation_id);
  const names = await pickNames(stores, moved, name, session);
  await stores.movements.insert(
    {
      _id: `mv_${deriveUuid(`movement:${name}`)}`,
      ...{ ...moved, account_id, resource: null, resource_id: null, order: 0, names },
      ...{ value_date, reported_at: at, sources: [{ kind: 'act', id: operation_id, at }] },
      ...{ reason: null, resolutions: [], applied: moved.amount, state: 'applied' },
      entry: operation_id,
    },
    session,
  );
}

interface Moved extends ClearingScope {
  direction: Direction;
  amount: Units;
  bank_reference: string | null;
}

/**
 * Refuses a reference of which a movement in this direction is posted. What comes back under the
 * reference of what was sent has a name of its own, and so has the rest of an open line.
 */
async function pickNames(
  stores: Pick<Stores, 'bankAccounts' | 'ledger' | 'movements' | 'statements'>,
  moved: Moved,
  own: string,
  session: ClientSession,
): Promise<string[]> {
  const { connector, livemode, currency, direction, bank_reference } = moved;
  if (bank_reference === null) return [own];
  const ofDirection = `${direction}:${bank_reference}`;
  const known = await stores.movements.findByNames(moved, [bank_reference, ofDirection], session);
  const posted = known.find((movement) => movement.direction === direction);
  // Parts that a bank books as one share its reference.
  const names = [bank_reference, bank_reference.replace(/#[\d.]+$/, '')];
  const named: LineDocument[] = [];
  const scope = { connector, livemode, currency };
  for (const { _id } of await stores.bankAccounts.list(scope, session)) {
    named.push(...(await stores.statements.findByBankReference(_id, names, session)));
  }
  const isOut = direction === 'out';
  const lines = named.filter(
    (line) => nameMovement(line) === bank_reference && line.amount < 0 === isOut,
  );
  const matched = lines.find(({ status }) => status === 'matched' || status === 'booked');
  if (posted === undefined && matched === undefined) {
    return [known.length === 0 ? bank_reference : ofDirection, own];
  }
  const entries = await stores.ledger.findUncleared({ ...scope, bank_reference }, session);
  const sum = entries.reduce((total, { amount }) => total + amount, 0);
  const explained = lines.find(
    ({ status, amount, fee }) => status === 'open' && (sum === amount || sum === amount + fee),
  );
  if (explained !== undefined) return [explained._id, own];
  const entry = posted?.entry ?? matched?.entries[0] ?? 'a charge';
  const message =
    `${bank_reference} of ${connector} is posted already, by ${entry}: ` +
    `${formatAmount(moved.amount, currency)} would be posted again. Nothing was posted. Where the ` +
    'bank moved another amount, import its statement, then post only the difference.';
  throw new ServiceError('bank_reference_used', message);
}

/**
 * Frees the names of an act whose reversal has cleared its entry: no statement has either. After a
 * match the bank has moved it, and the name stays taken.
 */
export async function releaseActed(
  { ledger, movements }: Pick<Stores, 'ledger' | 'movements'>,
  { entry, reversal }: { entry: string; reversal: NewEntry },
  session: ClientSession,
): Promise<void> {
  const [row] = await movements.findByEntries([entry], session);
  if (row === undefined || row.resource !== null) return;
  const ids = [operationId(reversal)];
  const waiting = await ledger.findAllUncleared(row, { _id: ids }, session);
  if (waiting.length > 0) return;
  const { operator, reason }: EntryNote = reversal.note ?? { operator: null, reason: null };
  const { _id: id, amount, currency } = row;
  const resolution = { as: 'never_happened', amount, operator, reason, at: reversal.at } as const;
  const applied = parseBookCurrency(currency) === undefined ? 0 : '0';
  const change = { names: [nameAct(entry)], applied, resolutions: [resolution] };
  await movements.change({ ...row, id }, change, session);
}

/** Adds a statement line to the movements of acts that it matches, and names them. */
export async function nameActed(
  { movements }: Register,
  line: Pick<LineDocument, '_id' | 'bank_reference' | 'position' | 'entries'>,
  at: string,
  session: ClientSession,
): Promise<void> {
  const acted = line.entries.filter((id) => ACTED.test(id));
  if (acted.length === 0) return;
  const name = nameMovement(line);
  for (const row of await movements.findByEntries(acted, session)) {
    const { _id, names, bank_reference, sources } = row;
    if (sources.some(({ id }) => id === line._id)) continue;
    const isNamed = name === null || bank_reference !== null;
    const isFree = !isNamed && (await movements.findByNames(row, [name], session)).length === 0;
    const named = isFree ? { bank_reference: name, names: [name, ...names] } : {};
    await movements.addSource(_id, { kind: 'statement', id: line._id, at }, named, session);
  }
}
