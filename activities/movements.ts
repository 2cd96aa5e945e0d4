import type { ClientSession } from 'mongodb';
import {
  computeResolvedFee,
  computeRest,
  fits,
  hasName,
  type Identity,
  identify,
  isGoingBack,
  isInSuspense,
  isLateRefund,
  type Movement,
  type MovementReason,
  type MovementReport,
  type Outcome,
  type Resolution,
  toUnits,
  type Units,
} from '../src/domain/banks/movement';
import { omitUndefined } from '../src/domain/defined';
import type { FeeBearer } from '../src/domain/merchants/acquirer-fee';
import { InsufficientBalance } from '../src/ledger/locks';
import {
  buildMovementHeld,
  buildMovementResolved,
  type MovingKind,
  toLineAmount,
} from '../src/ledger/resource-entries';
import {
  addSource,
  buildMovement,
  listMovements,
  resolveMovement,
} from '../src/movements/register';
import type { Stores } from '../src/store';
import type { ResourceDocument, resourceStore } from '../src/store/resource';
import { findFeeBearer, splitDebit } from './shared/opening';
import { auditAct, buildAuditEntry } from './shared/operator-acts';
import { bookInBook, type Work } from './shared/record';
import type { Act, Known, RecordDeps, WriteAnswer } from './shared/record-table';

interface Booking extends Known {
  kind: MovingKind;
  resource_id: string;
  at: string;
}

export interface MovementInput extends Booking {
  report: MovementReport;
  /** Why it is in suspense, should it be new. */
  reason: MovementReason;
  /** The report continues what had failed: what moved before is another movement. */
  isAfresh?: true;
  /** The merchant bears the first of the resource's own amount at once. */
  isBorne?: true;
  /** A bank with a reference for each step names what it has sent. */
  isLaterStep?: true;
  /** Bore its fee when a history was written. */
  fee_bearer?: FeeBearer | undefined;
}

/** Act of an operator, written with what it changes. */
interface BookedAct {
  /** Makes a repeat write nothing. */
  id: string;
  /** Real time; `at` is the account's. */
  acted_at: string;
  audit: Act;
  attention: string | null;
}

export interface ReturnInput extends Booking {
  report: MovementReport;
  /** Makes up for this one alone. */
  movement?: string;
  /** Present where an operator says so of one movement. */
  act?: BookedAct & {
    movement: string;
    as: 'customer' | 'bank';
    /** Null: all that is in suspense. */
    amount: Units | null;
  };
}

export interface ResolutionInput extends Booking, BookedAct {
  movement: string;
  /** With `customer`, it stays in suspense until the bank has sent it back. */
  as: Exclude<Outcome, 'bank'>;
  /** Null: all that is in suspense. */
  amount: Units | null;
}

interface Movements {
  /** All of the resource, the oldest first. */
  movements: Movement[];
}

type Held = {
  /** Movement that the report is about. */
  id: string;
  isNew: boolean;
};

type Returned =
  /** @param id movement that came back */
  | { outcome: 'returned'; id: string }
  | { outcome: 'repeated' }
  /** Nothing in suspense has its amount and currency, or several have, and it names none. */
  | { outcome: 'unmatched' };

type Resolved = { outcome: 'resolved' } | { outcome: 'refused'; why: string };

type Result<Answer> = WriteAnswer<ResourceDocument, Movements & Answer>;

/**
 * Movements besides those that a transition applies, each written once with its entry.
 * @see docs/ledger.md#bank-movements
 */
export function createMovements(deps: RecordDeps) {
  return {
    /** Holds a movement in suspense, unless it is known. */
    recordMovement: (input: MovementInput): Promise<Result<Held>> =>
      change<Held>(deps, input, (context) => hold(context, input)),
    /** Takes money that is back out of suspense. */
    recordReturn: (input: ReturnInput): Promise<Result<Returned>> =>
      change<Returned>(deps, input, (context) => bookReturn(context, input)),
    /** Decides who has, or bears, what is in suspense. */
    resolveMovement: async (input: ResolutionInput): Promise<Result<Resolved>> => {
      try {
        return await change<Resolved>(deps, input, (context) => resolve(context, input));
      } catch (error) {
        // Nobody owes an asset.
        if (!(error instanceof InsufficientBalance)) throw error;
        const movements = await listMovements(deps.stores, input.resource_id);
        const why = 'The balance does not hold this amount.';
        return { outcome: 'refused', why, movements, version: input.version };
      }
    },
  };
}

type Resource = ResourceDocument & {
  balance_account?: string;
  payment_id?: string;
  settled_amount?: number | null;
  late_amount?: number;
};

interface Context {
  deps: RecordDeps;
  kind: MovingKind;
  resource: Resource;
  movements: Movement[];
  clashes: number;
  at: string;
  session: ClientSession;
}

async function change<Answer extends object>(
  deps: RecordDeps,
  input: Booking & { report?: MovementReport; movement?: string },
  work: (context: Context) => Promise<Work<Answer>>,
): Promise<Result<Answer>> {
  const { kind, resource_id, at, version, transition, report } = input;
  const { stores } = deps;
  const named = input.movement === undefined ? null : await stores.movements.get(input.movement);
  const currency = report?.currency ?? named?.currency;
  return await bookInBook<ResourceDocument, Movements & Answer>(
    deps,
    pickStore(stores, kind),
    { resource_id, at, version, transition, currency },
    async (resource, session, clashes) => {
      const movements = await listMovements(stores, resource_id, session);
      const context = { deps, kind, resource, movements, clashes, at, session };
      const { answer, isNew } = await work(context);
      const after = isNew ? await listMovements(stores, resource_id, session) : movements;
      return { answer: { ...answer, movements: after }, isNew };
    },
  );
}

type MovingStore = Pick<
  ReturnType<typeof resourceStore<ResourceDocument, never>>,
  'get' | 'markAttention' | 'countWrite'
>;

function pickStore(stores: Stores, kind: MovingKind): MovingStore {
  const { payments, refunds, payouts, crypto_settlements } = stores;
  return {
    payment: payments,
    refund: refunds,
    payout: payouts,
    crypto_settlement: crypto_settlements,
  }[kind] as MovingStore;
}

type HoldInput = Omit<MovementInput, keyof Booking>;

async function hold(context: Context, input: HoldInput): Promise<Work<Held>> {
  const { deps, kind, resource, movements, clashes, at, session } = context;
  const { report, reason, isAfresh, isBorne, isLaterStep, fee_bearer: bearer } = input;
  const known = isAfresh ? movements.filter((each) => each.reason !== null) : movements;
  const sent = isLaterStep ? await findSent(context) : undefined;
  const found = identify(known, report);
  const identity: Identity =
    found.kind === 'new' && sent !== undefined ? { kind: 'named', movement: sent } : found;
  if (identity.kind !== 'new') {
    const isNew = await addSource(deps.stores, identity, report, { at, clashes }, session);
    return { answer: { id: identity.movement.id, isNew: false }, isNew };
  }
  const order = resource.version + 1;
  const fee = { fee: report.fee, fee_bearer: bearer };
  const fee_bearer = await findFeeBearer(deps.stores, resource, fee, session);
  const reported = { resource: kind, at, order, reason, clashes, fee_bearer };
  const isBack = kind === 'refund' && report.direction === 'in';
  // A refund that fails without an amount brings back what was sent.
  const owner = isBack ? { ...resource, amount: findSentAmount(context) } : resource;
  const row = buildMovement(owner, report, reported);
  const movement = { ...row, id: row._id };
  const { id: entry, entry: held } = buildMovementHeld(kind, resource, movement, at);
  await deps.stores.movements.insert({ ...row, entry }, session);
  await deps.stores.ledger.post(held, session);
  const { amount, currency } = resource;
  if (isBorne && known.every((each) => each.reason !== reason) && fits(row, { amount, currency })) {
    const borne = { as: 'merchant', amount: row.amount, operator: null, reason: null, at } as const;
    await settle(context, movement, borne);
  }
  return { answer: { id: row._id, isNew: true }, isNew: true };
}

function findSentAmount({ resource, movements }: Context): Units {
  const late = movements.findLast((each) => isLateRefund(each));
  if (resource.status === 'failed' && late?.currency === resource.currency) return late.amount;
  return resource.settled_amount ?? resource.amount;
}

/**
 * Finds what the report of a later step may name again: what only an answer has reported, or what a
 * bank with a reference for each step has sent.
 */
async function findSent({ deps, resource, movements }: Context): Promise<Movement | undefined> {
  const sent = movements.find(({ direction, reason }) => direction === 'out' && reason === null);
  if (sent?.sources.every(({ kind }) => kind === 'answer')) return sent;
  const report = await deps.stores.capabilities.get(resource.connector);
  return report?.reference_per_step === true ? sent : undefined;
}

async function bookReturn(context: Context, input: ReturnInput): Promise<Work<Returned>> {
  const { deps, kind, resource, clashes, at, session } = context;
  const { report, act } = input;
  if (act !== undefined && resource.audit.some(({ id }) => id === act.id)) {
    return { answer: { outcome: 'returned', id: act.movement }, isNew: false };
  }
  const movements = await withUnreported(context, report);
  const isChanged = movements !== context.movements;
  const identity = identify(movements, report);
  const candidates = movements.filter((each) => {
    if (act !== undefined) return each.id === act.movement;
    if (each.direction === report.direction || !isInSuspense(each)) return false;
    if (input.movement !== undefined && each.id !== input.movement) return false;
    return fits({ ...each, amount: toUnits(each, computeRest(each)) }, report);
  });
  // Movements of one amount and currency are alike: what the bank is to send back first, then the oldest.
  const movement = candidates.find(isGoingBack) ?? candidates[0];
  const known = identity.kind === 'new' ? undefined : identity.movement;
  const isOwn = known?.sources[0]?.id === report.source.id;
  // What a lost attempt of this very report has resolved.
  const returned = isOwn
    ? movements.find(({ resolutions }) => resolutions.some(({ by }) => by === known?.id))
    : undefined;
  if (returned !== undefined) {
    return { answer: { outcome: 'returned', id: returned.id }, isNew: isChanged };
  }
  if (identity.kind !== 'new' && act === undefined) {
    const isRepeat = isCertain(identity.movement, report, candidates) || movement === undefined;
    if (isRepeat) {
      const isNew = await addSource(deps.stores, identity, report, { at, clashes }, session);
      return { answer: { outcome: 'repeated' }, isNew: isNew || isChanged };
    }
  }
  const rest = movement === undefined ? 0n : computeRest(movement);
  const isShort = BigInt(act?.amount ?? 0) > rest;
  const areAlike = candidates.every(
    (each) => each.currency === movement?.currency && computeRest(each) === rest,
  );
  if (movement === undefined || !areAlike || !isInSuspense(movement) || isShort) {
    return { answer: { outcome: 'unmatched' }, isNew: isChanged };
  }
  const amount = act?.amount ?? toUnits(movement, rest);
  const back = { ...report, amount, currency: movement.currency };
  // Two movements of one write have places of their own.
  const order = resource.version + (isChanged ? 1.5 : 1);
  const reported = { resource: kind, at, order, reason: null, clashes } as const;
  const row = buildMovement(resource, back, reported);
  const { who: operator = null, why: reason = null } = act?.audit ?? {};
  const as = act?.as ?? (movement.direction === 'in' ? 'customer' : 'bank');
  const resolution = { as, amount, operator, reason, at, by: row._id } as const;
  const entry = await settle(context, movement, resolution, back);
  await deps.stores.movements.insert({ ...row, entry }, session);
  if (act !== undefined) await writeAct(context, act);
  else if (kind === 'payment') {
    await deps.stores.payments.noteApplied(resource._id, report.source.id, session);
  }
  return { answer: { outcome: 'returned', id: movement.id }, isNew: true };
}

/**
 * Whether a report comes again itself, or names its movement: a bank may also give what it sends and
 * what comes back the same reference.
 * @param candidates what it may take out of suspense
 */
function isCertain(
  movement: Movement,
  { source, bank_reference }: MovementReport,
  candidates: readonly Movement[],
): boolean {
  if (movement.sources.some(({ id }) => id === source.id)) return true;
  return Boolean(bank_reference) && !candidates.some((each) => hasName(each, bank_reference ?? ''));
}

/** Records late funds that are back before their arrival was reported. */
async function withUnreported(context: Context, report: MovementReport): Promise<Movement[]> {
  const { deps, kind, resource, movements, session } = context;
  const { amount = resource.amount, currency = resource.currency } = report;
  const isUnreported =
    kind === 'payment' && movements.length === 0 && resource.status !== 'settled';
  if (!isUnreported || currency !== resource.currency) return movements;
  const source = { kind: 'answer', id: `reversal:${resource._id}` } as const;
  const late = { source, direction: 'in', amount, currency } as const;
  await hold(context, { report: late, reason: 'late' });
  return await listMovements(deps.stores, resource._id, session);
}

async function resolve(context: Context, input: ResolutionInput): Promise<Work<Resolved>> {
  const { kind, resource, movements, at } = context;
  const { movement: id, as, amount, ...act } = input;
  if (resource.audit.some((entry) => entry.id === act.id)) {
    return { answer: { outcome: 'resolved' }, isNew: false };
  }
  const refuse = (why: string) => ({ answer: { outcome: 'refused', why } as const, isNew: false });
  const movement = movements.find((each) => each.id === id);
  if (movement === undefined) return refuse(`The ${kind} has no movement ${id}.`);
  const rest = computeRest(movement);
  if (rest === 0n) return refuse(`The movement ${id} is not in suspense.`);
  const part = BigInt(amount ?? rest);
  if (part > rest) return refuse(`Of the movement ${id}, ${rest} is in suspense (minor units).`);
  if (as === 'customer') {
    await context.deps.stores.movements.change(movement, { is_returning: true }, context.session);
    await writeAct(context, act);
    return { answer: { outcome: 'resolved' }, isNew: true };
  }
  const { who: operator, why: reason } = act.audit;
  await settle(context, movement, { as, amount: toUnits(movement, part), operator, reason, at });
  await writeAct(context, act);
  return { answer: { outcome: 'resolved' }, isNew: true };
}

/** Writes a resolution with its entry. @returns the id of the entry */
async function settle(
  context: Context,
  movement: Omit<Movement, 'names' | 'reported_at' | 'sources' | 'reason'>,
  resolution: Resolution,
  { bank_reference, value_date }: Partial<MovementReport> = {},
): Promise<string> {
  const { deps, kind, resource, at, session } = context;
  const { stores } = deps;
  const owed = await computeDebt(context, movement, resolution);
  const fee = computeResolvedFee(movement, resolution);
  const decided = { ...resolution, ...(owed ? { owed } : {}), ...(fee ? { fee } : {}) };
  const time = { at, ...omitUndefined({ bank_reference, value_date }) };
  const { id, entry } = buildMovementResolved(kind, resource, movement, decided, time);
  const note = { operator: resolution.operator, reason: resolution.reason };
  await resolveMovement(stores, movement, decided, session);
  await stores.ledger.post({ ...entry, ...(note.operator === null ? {} : { note }) }, session);
  const { payment_id, currency } = resource;
  if (resolution.as !== 'merchant' || payment_id === undefined) return id;
  if (movement.currency !== currency) return id;
  // What the merchant bears of a refund is refunded, and what is back is not.
  const amount = Number(resolution.amount);
  const isFailed = resource.status === 'failed';
  if (movement.direction === 'out') {
    await stores.payments.takeLateRefund({ payment_id, amount }, session);
    if (isFailed) await stores.refunds.noteLate(resource._id, amount, session);
    return id;
  }
  // Of a failed refund, only what the merchant bore was taken from the payment.
  const taken = isFailed ? Math.min(amount, resource.late_amount ?? 0) : amount;
  await stores.payments.releaseRefund({ payment_id, amount: taken }, session);
  if (isFailed && taken > 0) await stores.refunds.noteLate(resource._id, -taken, session);
  return id;
}

/** Minor units that the balance does not hold; nobody owes an asset. */
async function computeDebt(
  { deps, resource, session }: Context,
  { direction, currency }: Pick<Movement, 'direction' | 'currency'>,
  { as, amount }: Resolution,
): Promise<number> {
  const units = toLineAmount(amount, currency);
  if (as !== 'merchant' || direction === 'in' || typeof units === 'bigint') return 0;
  const { account_id, livemode, balance_account } = resource;
  const owner = { account_id, livemode, currency };
  return (await splitDebit(deps.stores.ledger, owner, units, session, balance_account)).owed;
}

async function writeAct(
  { deps, kind, resource, session }: Context,
  { id, acted_at: at, audit: act, attention }: BookedAct,
): Promise<void> {
  const { _id: resource_id, account_id, livemode, version, status } = resource;
  const change = { act, id, at, before: status, after: status };
  const update = { version, attention, attention_at: Date.parse(at) };
  const { when, before, after, ...audit } = buildAuditEntry(change);
  const stored = { ...update, audit: { ...audit, at: when } };
  await pickStore(deps.stores, kind).markAttention(resource_id, stored, session);
  const subject = { resource: kind, resource_id, account_id, livemode };
  await auditAct(deps, subject, change, session);
}
