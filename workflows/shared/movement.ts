import type { CallbackResource } from '../../src/domain/banks/callback';
import {
  computeRest,
  type Direction,
  identify,
  isGoingBack,
  isInSuspense,
  listTakeable,
  type Movement,
  type MovementReason,
  type MovementReport,
} from '../../src/domain/banks/movement';
import { omitUndefined } from '../../src/domain/defined';
import { timestamp } from './clock';
import { type AuditedAct, datedAudit, type OperatorItem } from './operator-acts';
import type { Booked, Booking, BookingInput } from './persist';
import type { CommonFacts, WorkflowState } from './state';

export type MovingKind = Exclude<CallbackResource, 'crypto_payment' | 'dispute'>;

type Moving = WorkflowState<string, string, CommonFacts>;

interface Books<R> {
  enterReason(resource: R, attention: string | null): void;
  book<Name extends Booking>(
    resource: R,
    name: Name,
    input: BookingInput<Name>,
  ): Promise<Booked<Name>>;
}

interface ReportFacts {
  callback_id: string;
  bank_reference?: string | undefined;
  /** Names a movement on a chain. */
  transaction_id?: string | undefined;
  amount?: number | string | undefined;
  currency?: string | undefined;
  value_date?: string | undefined;
}

export function buildReport(
  direction: Direction,
  { callback_id: id, bank_reference, transaction_id, amount, currency, value_date }: ReportFacts,
): MovementReport {
  const reference = transaction_id || bank_reference || undefined;
  const facts = { bank_reference: reference, amount, currency, value_date };
  return { source: { kind: 'callback', id }, direction, ...omitUndefined(facts) };
}

/** How a report that changes no status moves money. */
export interface Suspension {
  direction: Direction;
  reason: MovementReason;
  /** The report continues what had failed: what moved before is another movement. */
  isAfresh?: true;
  /** The merchant bears the first of the resource's own amount at once. */
  isBorne?: true;
  /** A bank with a reference for each step names what it has sent. */
  isLaterStep?: true;
}

/** @returns movement that the report is about, and whether it is new */
export async function holdMovement<R extends Moving>(
  record: Books<R>,
  kind: MovingKind,
  resource: R,
  report: MovementReport,
  { reason, ...plan }: Suspension,
): Promise<{ movement: Movement | undefined; isNew: boolean }> {
  const known = plan.isAfresh ? undefined : identify(resource.movements, report);
  // Banks repeat what is applied, and the stored callback is enough of it.
  if (known?.kind === 'repeat' && known.movement.reason === null) {
    return { movement: known.movement, isNew: false };
  }
  const about = { kind, resource_id: resource.id, at: timestamp(resource) };
  const input = { ...about, reason, report, ...plan };
  const { movements, id, isNew } = await record.book(resource, 'recordMovement', input);
  resource.movements = movements;
  return { movement: movements.find((each) => each.id === id), isNew };
}

/**
 * Takes money that is back out of suspense.
 * @param movement the only one that it may be about
 */
export async function bookReturn<R extends Moving>(
  record: Books<R>,
  kind: MovingKind,
  resource: R,
  report: MovementReport,
  movement?: string,
) {
  const about = { kind, resource_id: resource.id, at: timestamp(resource), report };
  const input = { ...about, ...omitUndefined({ movement }) };
  const result = await record.book(resource, 'recordReturn', input);
  resource.movements = result.movements;
  return result.outcome;
}

/**
 * Records that one movement goes back, as an operator knows: the report that follows names it.
 * @returns why it does not
 */
export async function markBack<R extends Moving>(
  record: Books<R>,
  kind: MovingKind,
  resource: R,
  audit: AuditedAct,
  movement: Movement,
  { as, amount }: { as: 'customer' | 'bank'; amount?: number | undefined },
): Promise<string | undefined> {
  const act = buildBookedAct(resource, audit, movement, amount);
  const direction = movement.direction === 'in' ? 'out' : 'in';
  const source = { kind: 'act', id: act.id } as const;
  const report = { source, direction, currency: movement.currency } as const;
  const about = { kind, resource_id: resource.id, at: timestamp(resource) };
  const back = { ...act, movement: movement.id, as, amount: amount ?? null };
  const input = { ...about, report, act: back };
  const result = await record.book(resource, 'recordReturn', input);
  resource.movements = result.movements;
  if (result.outcome !== 'returned') {
    return describeRest(movement);
  }
  record.enterReason(resource, act.attention);
  return undefined;
}

export function describeRest(movement: Movement): string {
  return `Of the movement ${movement.id}, ${computeRest(movement)} is in suspense (minor units).`;
}

type Decided = Pick<OperatorItem<string, unknown>, 'movement' | 'as' | 'amount'>;

/** Act of the resource that takes what is in suspense; undefined where none does. */
type FindTaker<R> = (resource: R, movement: Movement) => string | undefined;

/** Decides who has, or bears, what is in suspense. @returns why not */
export async function resolveMovement<R extends Moving>(
  record: Books<R>,
  kind: MovingKind,
  resource: R,
  audit: AuditedAct,
  { movement: named, as, amount }: Decided,
  findTaker: FindTaker<R>,
): Promise<string | undefined> {
  const movement = findNamed(resource, named);
  if (typeof movement === 'string') return movement;
  if (as === undefined) return 'The act says by `as` who has the money, or bears it.';
  if (as === 'customer') return 'Only money that came for a payment goes back to a customer.';
  // What came may be the service's at any time; what was sent, the resource takes first.
  const isTakerFirst = as === 'merchant' || (as === 'loss' && movement.direction === 'out');
  const taker = isTakerFirst ? findTaker(resource, movement) : undefined;
  if (taker !== undefined) {
    return `The ${kind} takes it: send \`${taker}\` with the movement ${movement.id}.`;
  }
  if (as === 'bank') return await markBack(record, kind, resource, audit, movement, { as, amount });
  const act = buildBookedAct(resource, audit, movement, amount);
  const about = { kind, resource_id: resource.id, at: timestamp(resource) };
  const input = { ...about, ...act, movement: movement.id, as, amount: amount ?? null };
  const result = await record.book(resource, 'resolveMovement', input);
  resource.movements = result.movements;
  if (result.outcome === 'refused') return result.why;
  record.enterReason(resource, act.attention);
  return undefined;
}

/** @returns the only one in suspense where none is named; a text: why there is none */
export function findNamed(
  { movements }: Pick<Moving, 'movements'>,
  named: string | undefined,
): Movement | string {
  const held = movements.filter(isInSuspense);
  if (named !== undefined) {
    return held.find(({ id }) => id === named) ?? `No movement ${named} is in suspense.`;
  }
  const [movement, another] = held;
  if (movement === undefined) return 'No money is in suspense.';
  if (another === undefined) return movement;
  const ids = held.map(({ id }) => id).join(', ');
  return `Several movements are in suspense; name one by its id: ${ids}.`;
}

/** A reason that comes from a movement ends with the last one that has it. */
export function buildBookedAct(
  { movements, attention }: Pick<Moving, 'movements' | 'attention'>,
  audit: AuditedAct,
  { id: movement, reason, is_returning }: Movement,
  part?: number,
) {
  const { id, at: acted_at, ...act } = datedAudit(audit);
  const left = movements.filter((each) => {
    const taken = each.id === movement ? BigInt(part ?? computeRest(each)) : 0n;
    return computeRest(each) > taken;
  });
  const isSentBack = reason === 'late' || is_returning === true;
  const isItsOwn = attention === reason || (isSentBack && isOfLate(attention));
  const isOver = isItsOwn && left.every((each) => each.reason !== reason);
  return { id, acted_at, audit: act, attention: isOver ? findReason(left) : attention };
}

/** Finds the reason of what is left in suspense; late funds are on their way back. */
export function findReason(
  movements: readonly Movement[],
): MovementReason | 'late_settlement_reversed' | null {
  const held = movements.filter(isInSuspense);
  const undecided = held.find((movement) => !isGoingBack(movement));
  if (undecided !== undefined) return undecided.reason;
  return held.length === 0 ? null : 'late_settlement_reversed';
}

const isOfLate = (attention: string | null) => attention?.startsWith('late_') === true;

/**
 * Keeps a reason as long as a movement with it is in suspense; what goes back has the reasons of
 * late funds.
 */
export function keepsReason(
  { attention }: Pick<Moving, 'attention'>,
  movements: readonly Movement[],
): boolean {
  return movements.some(
    (movement) => movement.reason === attention && isInSuspense(movement) && !movement.is_returning,
  );
}

/** Lists what a transition takes out of suspense: what its act names, or else what is its own. */
export function listOwn(
  movements: readonly Movement[],
  {
    isAct,
    reference,
    movement: id,
  }: { isAct: boolean; reference?: string | undefined; movement?: string | undefined },
  money: { direction: Direction; currency: string },
): Movement[] {
  const held = listTakeable(movements, { ...money, id });
  if (isAct || reference === undefined) return held;
  return held.filter((each) => (each.bank_reference ?? reference) === reference);
}
