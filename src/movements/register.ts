import type { ClientSession } from 'mongodb';
import { deriveUuid } from '../base/ids';
import { isDuplicateKey } from '../base/mongo';
import type { CallbackResource } from '../domain/banks/callback';
import {
  computeRest,
  type Direction,
  type Identity,
  listReleased,
  type Movement,
  type MovementReason,
  type MovementReport,
  type MovementSource,
  type Resolution,
  type Taken,
  toUnits,
  type Units,
} from '../domain/banks/movement';
import { omitUndefined } from '../domain/defined';
import type { FeeBearer } from '../domain/merchants/acquirer-fee';
import { type NewEntry, operationId } from '../ledger/entries';
import { buildMovementResolved, type MovingKind } from '../ledger/resource-entries';
import type { Stores } from '../store';
import { MOVEMENT_NAMES, type MovementDocument, toMovement } from '../store/movements';

type Register = Pick<Stores, 'movements'>;

/** Resource that a report is about; its money stands in for what a report leaves out. */
export interface MovementOwner {
  _id: string;
  connector: string;
  livemode: boolean;
  account_id: string;
  amount: Units;
  currency: string;
}

export interface Reported {
  resource: CallbackResource;
  /** ISO 8601, ms. */
  at: string;
  /** Version of the resource with the movement. */
  order: number;
  /** Null where an entry of the resource takes all of it. */
  reason: MovementReason | null;
  /** Number of tries that found a name taken. */
  clashes: number;
  /** Bears what the acquirer keeps. */
  fee_bearer?: FeeBearer | undefined;
}

/** Derives the id from the first report, so that a repeated write keeps it. */
export function buildMovement(
  owner: MovementOwner,
  { source, direction, bank_reference, value_date, fee, available_on, ...money }: MovementReport,
  { resource, at, order, reason, clashes, fee_bearer: bearer }: Reported,
): Omit<MovementDocument, 'entry'> {
  const { _id: resource_id, connector, livemode, account_id } = owner;
  const { amount = owner.amount, currency = owner.currency } = money;
  // Callbacks and instructions have ids of their own; acts are numbered for each resource.
  const name = source.kind === 'act' ? `act:${source.id}` : source.id;
  const own = `${resource_id}:${direction}:${name}`;
  const free = bank_reference && clashes === 0 ? [bank_reference, name] : [name];
  const names = clashes > 1 ? [own] : [...new Set(free)];
  return {
    _id: `mv_${deriveUuid(`movement:${own}`)}`,
    ...{ connector, livemode, account_id, resource, resource_id, order, names },
    bank_reference: bank_reference || null,
    ...{ direction, amount, currency, value_date: value_date ?? null, reported_at: at },
    sources: [{ ...source, at }],
    ...{ reason, resolutions: [] },
    ...(fee && bearer ? { fee: { amount: fee, bearer } } : {}),
    ...omitUndefined({ available_on }),
    applied: reason === null ? amount : toUnits({ amount }, 0n),
    state: reason === null ? 'applied' : 'suspense',
  };
}

/** Oldest first, without those of disputes: no other report of a payment is about one. */
export async function listMovements(
  { movements }: Register,
  resource_id: string,
  session?: ClientSession,
): Promise<Movement[]> {
  const rows = await movements.forResource(resource_id, session);
  return rows.filter(({ dispute }) => dispute === undefined).map(toMovement);
}

/** Leaves out what later versions of the resource have added. */
export async function listMovementsUntil(
  { movements }: Register,
  resource_id: string,
  version: number,
): Promise<Movement[]> {
  const rows = await movements.forResource(resource_id);
  const isKnown = ({ dispute, order }: MovementDocument) =>
    dispute === undefined && order < version + 1;
  return rows.filter(isKnown).map(toMovement);
}

/** Bounds what repeats add. */
const SOURCES_MAX = 50;

/** Adds a report of a known movement as one more source. @returns whether it has written */
export async function addSource(
  { movements }: Register,
  { kind, movement }: Exclude<Identity, { kind: 'new' }>,
  { source, bank_reference }: MovementReport,
  { at, clashes }: Pick<Reported, 'at' | 'clashes'>,
  session: ClientSession,
): Promise<boolean> {
  const { id, names, sources } = movement;
  const isKnown = sources.some((each) => each.id === source.id);
  if (isKnown || (kind === 'repeat' && sources.length >= SOURCES_MAX)) return false;
  const named =
    kind === 'named' && bank_reference
      ? { bank_reference, ...(clashes > 0 ? {} : { names: [bank_reference, ...names] }) }
      : {};
  await movements.addSource(id, { ...source, at }, named, session);
  return true;
}

/** Smallest units that left suspense, by the direction in which they had moved. */
export interface LeftSuspense {
  in: bigint;
  out: bigint;
}

/** Marks what an entry of the resource takes out of suspense. */
export async function applyMovements(
  { movements }: Register,
  resource_id: string,
  taken: readonly Taken[] = [],
  session: ClientSession,
): Promise<LeftSuspense> {
  const left = { in: 0n, out: 0n };
  if (taken.length === 0) return left;
  const rows = await listMovements({ movements }, resource_id, session);
  for (const { id, amount } of taken) {
    const movement = rows.find((row) => row.id === id);
    const units = BigInt(amount);
    if (movement === undefined || computeRest(movement) < units) {
      throw new Error(`The movement ${id} of ${resource_id} has less than ${amount} in suspense.`);
    }
    const applied = toUnits(movement, BigInt(movement.applied) + units);
    await movements.change(movement, { applied }, session);
    left[movement.direction] += units;
  }
  return left;
}

export async function resolveMovement(
  { movements }: Register,
  movement: Omit<Movement, 'names' | 'reported_at' | 'sources' | 'reason'>,
  resolution: Resolution,
  session: ClientSession,
): Promise<void> {
  const resolutions = [...movement.resolutions, resolution];
  await movements.change(movement, { resolutions }, session);
}

/** A name of its own is always free. */
const CLASHES_MAX = 2;

/**
 * Repeats a write whose movement has a name of another, without that name: a bank may give several
 * movements one reference, and no position in it.
 */
export async function withFreeNames<T>(work: (clashes: number) => Promise<T>): Promise<T> {
  for (let clashes = 0; ; clashes += 1) {
    try {
      return await work(clashes);
    } catch (error) {
      if (clashes === CLASHES_MAX || !isDuplicateKey(error, MOVEMENT_NAMES)) throw error;
    }
  }
}

/** Transition with which a bank's report, or an operator's act, moves money. */
export interface Moving {
  at: string;
  callback_id?: string;
  audit?: { who?: string; why?: string };
  value_date?: string;
  /** The bank's, of the movement. */
  reference?: string;
  /** Minor units that the acquirer keeps of it. */
  fee?: number;
  fee_bearer?: FeeBearer | undefined;
  clashes?: number;
}

interface Applied {
  kind: CallbackResource;
  direction: Direction;
  amount: Units;
  /** Id of the entry of the transition. */
  entry: string;
  /** The report is about a later movement: this one answers the instruction. */
  isImplied?: boolean;
}

/** Inserts the movement that a transition applies; none where nothing is left of it. */
export async function recordApplied(
  { movements }: Register,
  resource: MovementOwner & { version: number; transition: number },
  { at, callback_id, audit, value_date, reference, fee, fee_bearer, clashes = 0 }: Moving,
  { kind, direction, amount, entry, isImplied = false }: Applied,
  session: ClientSession,
): Promise<Movement[]> {
  if (BigInt(amount) === 0n) return [];
  const { _id, currency, version, transition } = resource;
  const isReported = callback_id !== undefined && !isImplied;
  const named =
    audit === undefined ? { kind: 'answer', id: _id } : { kind: 'act', id: `${_id}:${transition}` };
  const source = (isReported ? { kind: 'callback', id: callback_id } : named) as MovementSource;
  // A bank without a reference of its own answers with the id that it was given.
  const isOwn = reference === _id || reference === _id.replaceAll('-', '');
  const facts = { value_date, fee, bank_reference: isImplied || isOwn ? undefined : reference };
  const report = { source, direction, amount, currency, ...facts };
  const order = version + (direction === 'in' ? 0.5 : 0);
  const reported = { resource: kind, at, order, reason: null, clashes, fee_bearer };
  const row = buildMovement(resource, report, reported);
  await movements.insert({ ...row, entry }, session);
  return [toMovement({ ...row, entry })];
}

interface Disputed {
  dispute: string;
  source: Omit<MovementSource, 'at'>;
  direction: Direction;
  /** Minor units, without the fee. */
  amount: number;
  /** Minor units that the acquirer keeps besides, or gives back. */
  fee?: number;
  fee_bearer?: FeeBearer | undefined;
  /** Takes all of it. */
  entry: NewEntry;
  clashes?: number;
}

/** Inserts the movement with which a dispute takes money, or gives it back. */
export async function recordDisputed(
  { movements }: Register,
  payment: MovementOwner & { version: number },
  { dispute, entry: posted, clashes = 0, fee_bearer, ...moved }: Disputed,
  session: ClientSession,
): Promise<void> {
  const { at, value_date, currency, bank_reference } = posted;
  const report = { ...moved, currency, value_date, bank_reference: bank_reference || undefined };
  const reported = { at, order: payment.version + 1, reason: null, clashes, fee_bearer };
  const row = buildMovement(payment, report, { resource: 'payment', ...reported });
  await movements.insert({ ...row, dispute, entry: operationId(posted) }, session);
}

/** Adds the bank's name to the movement of a dispute that had none. */
export async function nameDisputed(
  { movements }: Register,
  payment_id: string,
  { by, bank_reference }: { by: string; bank_reference: string },
  { at, report, clashes }: { at: string; report: { callback_id: string }; clashes: number },
  session: ClientSession,
): Promise<void> {
  const rows = await movements.forResource(payment_id, session);
  const row = rows.find(({ sources }) => sources.some(({ id }) => id === by));
  if (row === undefined) return;
  const named = {
    bank_reference,
    ...(clashes > 0 ? {} : { names: [bank_reference, ...row.names] }),
  };
  const source = { kind: 'callback', id: report.callback_id, at } as const;
  await movements.addSource(row._id, source, named, session);
}

/**
 * Takes out of suspense what was sent, since its resource fails: the bank has it back, or, as an
 * operator has found out, it never left.
 * @returns all that changed
 */
export async function releaseSent(
  stores: Pick<Stores, 'movements' | 'ledger'>,
  kind: MovingKind,
  resource: MovementOwner & { version: number; balance_account?: string },
  { at, callback_id, audit, clashes = 0 }: Moving,
  session: ClientSession,
): Promise<Movement[]> {
  const held = listReleased(await listMovements(stores, resource._id, session));
  const changed: Movement[] = [];
  for (const [index, movement] of held.entries()) {
    const { who: operator = null, why: reason = null } = audit ?? {};
    const amount = toUnits(movement, computeRest(movement));
    const decided = { amount, operator, reason, at };
    const id = `${callback_id ?? resource._id}#${index + 2}`;
    const report = { source: { kind: 'answer', id }, direction: 'in', amount } as const;
    const back = { ...report, currency: movement.currency };
    const order = resource.version + (index + 1) / (held.length + 1) / 2;
    const reported = { resource: kind, at, order, reason: null, clashes };
    const row = buildMovement(resource, back, reported);
    const resolution: Resolution =
      audit === undefined
        ? { as: 'bank', ...decided, by: row._id }
        : { as: 'never_happened', ...decided };
    const entry = buildMovementResolved(kind, resource, movement, resolution, { at });
    await resolveMovement(stores, movement, resolution, session);
    await stores.ledger.post(entry.entry, session);
    changed.push({ ...movement, resolutions: [...movement.resolutions, resolution] });
    if (resolution.by === undefined) continue;
    const stored = { ...row, entry: entry.id };
    await stores.movements.insert(stored, session);
    changed.push(toMovement(stored));
  }
  return changed;
}
