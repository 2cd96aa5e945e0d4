import type { AcquirerFee } from '../merchants/acquirer-fee';
import type { StatementLine } from './statement';

export type Direction = 'in' | 'out';

/** Report of a movement, by a callback, an answer or another source. */
export interface MovementSource {
  kind: 'callback' | 'answer' | 'statement' | 'file' | 'block' | 'act';
  /** Callback, instruction or act. */
  id: string;
  /** ISO 8601, ms. */
  at: string;
}

/** Why a movement is in suspense, or was; all but `late` are attention reasons. */
export type MovementReason =
  | 'late'
  | 'amount_differs'
  | 'second_settlement'
  | 'second_completion'
  | 'settled_after_failed'
  | 'failed_after_settled'
  | 'moved_after_failed'
  | 'moved_after_returned'
  | 'second_return'
  | 'return_too_late'
  | 'return_not_possible'
  | 'debit_reversed'
  | 'return_reversed'
  | DepositReason;

/** Reasons of crypto deposits; `deposit_undone`: the chain has removed what is credited. */
export type DepositReason =
  | 'deposit_undone'
  | 'deposit_held'
  | 'late_deposit'
  | 'wrong_asset'
  | 'deposit_to_return';

/** Minor units, or an asset's smallest as text. */
export type Units = number | string;

/**
 * Says who has, or bears, what was in suspense. `never_happened`: the report was wrong.
 * @see docs/ledger.md#bank-movements
 */
export const OUTCOMES = ['merchant', 'customer', 'bank', 'loss', 'never_happened'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Resolution {
  as: Outcome;
  amount: Units;
  /** Minor units of the merchant's part that the balance did not hold. */
  owed?: number;
  /** Minor units of the acquirer's fee that the merchant bears. */
  fee?: number;
  /** Movement with which the money came back. */
  by?: string;
  /** Address to which a deposit went back. */
  address?: string;
  /** Null where the bank reported it. */
  operator: string | null;
  reason: string | null;
  /** ISO 8601, ms. */
  at: string;
}

/** Money that a bank moved: one, however often and by whatever it is reported. */
export interface Movement {
  /** `mv_{UUID}`, derived from its first report. */
  id: string;
  /** Identify it: the bank's reference, and the id of the first report. */
  names: readonly string[];
  bank_reference: string | null;
  direction: Direction;
  amount: Units;
  /** ISO 4217, or an asset and its network. */
  currency: string;
  /** `YYYY-MM-DD`. */
  value_date: string | null;
  /** ISO 8601, ms. */
  reported_at: string;
  sources: readonly MovementSource[];
  reason: MovementReason | null;
  /** Part of a payment's money that the acquirer keeps, if reported. */
  fee?: AcquirerFee;
  /** `YYYY-MM-DD` from which a payment’s money can be used; absent: at once. */
  available_on?: string;
  /** Part that an entry of the resource has taken. */
  applied: Units;
  resolutions: readonly Resolution[];
  /** The bank is instructed to send it back, as an operator has decided. */
  is_returning?: true;
  /** A deposit that was credited, and debited again until the payer has it. */
  is_debited?: true;
}

export type MovementState = 'applied' | 'suspense' | 'resolved';

/** Smallest units in suspense. */
export function computeRest({
  amount,
  applied,
  resolutions,
}: Pick<Movement, 'amount' | 'applied' | 'resolutions'>): bigint {
  return resolutions.reduce(
    (rest, resolution) => rest - BigInt(resolution.amount),
    BigInt(amount) - BigInt(applied),
  );
}

/** Stores units as the movement has its amount. */
export function toUnits({ amount }: Pick<Movement, 'amount'>, units: bigint): Units {
  return typeof amount === 'number' ? Number(units) : String(units);
}

export function getState(
  movement: Pick<Movement, 'amount' | 'applied' | 'resolutions'>,
): MovementState {
  if (computeRest(movement) > 0n) return 'suspense';
  return movement.resolutions.length === 0 ? 'applied' : 'resolved';
}

export function isInSuspense(movement: Movement): boolean {
  return computeRest(movement) > 0n;
}

/** A resource with money in question must neither expire nor be cancelled. */
export function holdsMoney({ movements = [] }: { movements?: readonly Movement[] }): boolean {
  return movements.some(isInSuspense);
}

/** Whether the bank is to send it back: late funds by themselves, others by a decision. */
export function isGoingBack(movement: Movement): boolean {
  return isInSuspense(movement) && (movement.reason === 'late' || movement.is_returning === true);
}

/** @returns minor units that the merchant bears of a credit, and at most all of it */
function computeFee({ fee }: Pick<Movement, 'fee'>, credited: Units): number {
  return fee?.bearer === 'merchant' ? Math.min(fee.amount, Number(credited)) : 0;
}

/** Minor units of acquirers' fees in what a settlement applies. @see docs/ledger.md#fees-of-acquirers */
export function sumFees(movements: readonly Pick<Movement, 'fee' | 'applied'>[]): number {
  return movements.reduce((sum, movement) => sum + computeFee(movement, movement.applied), 0);
}

/** Minor units of the acquirer's fee in what the merchant has of it; all is in the first part. */
export function computeResolvedFee(
  movement: Pick<Movement, 'direction' | 'fee' | 'applied' | 'resolutions'>,
  { as, amount }: Pick<Resolution, 'as' | 'amount'>,
): number {
  const { direction, applied, resolutions } = movement;
  const isCredited = BigInt(applied) > 0n || resolutions.some((each) => each.as === 'merchant');
  return as === 'merchant' && direction === 'in' && !isCredited ? computeFee(movement, amount) : 0;
}

/** Report of a bank about a resource. */
export interface MovementReport {
  source: Omit<MovementSource, 'at'>;
  direction: Direction;
  bank_reference?: string | undefined;
  /** Absent: not reported. */
  amount?: Units | undefined;
  /** Minor units that the acquirer keeps of it. */
  fee?: number | undefined;
  /** `YYYY-MM-DD` from which it can be used. */
  available_on?: string | undefined;
  currency?: string | undefined;
  value_date?: string | undefined;
}

export type Identity =
  /** Reported before: the report is one more source. */
  | { kind: 'repeat'; movement: Movement }
  /** Reported before without the bank's reference, which this report has. */
  | { kind: 'named'; movement: Movement }
  | { kind: 'new' };

/**
 * Decides whether a report is about a movement that its resource has. A second reference or another
 * amount is a second movement; a report without a reference repeats what fits it.
 * @see docs/ledger.md#bank-movements
 */
export function identify(movements: readonly Movement[], report: MovementReport): Identity {
  const own = movements.filter(({ direction }) => direction === report.direction);
  const known = own.find(({ sources }) => sources.some(({ id }) => id === report.source.id));
  if (known !== undefined) return { kind: 'repeat', movement: known };
  const same = own.filter((movement) => fits(movement, report));
  const { bank_reference } = report;
  if (!bank_reference) {
    const [first] = same;
    return first === undefined ? { kind: 'new' } : { kind: 'repeat', movement: first };
  }
  const named = same.find((movement) => hasName(movement, bank_reference));
  if (named !== undefined) return { kind: 'repeat', movement: named };
  const unnamed = same.find((movement) => movement.bank_reference === null);
  return unnamed === undefined ? { kind: 'new' } : { kind: 'named', movement: unnamed };
}

/** Whether the bank has sent a refund after it failed, as far as no operator found otherwise. */
export function isLateRefund({ reason, resolutions }: Pick<Movement, 'reason' | 'resolutions'>) {
  return (
    reason === 'settled_after_failed' && resolutions.every(({ as }) => as !== 'never_happened')
  );
}

/** Reasons of corrections, which the bank may make up for by another movement. */
export function isCorrection(reason: MovementReason | null): boolean {
  return reason === 'debit_reversed' || reason === 'return_reversed';
}

const CORRECTED_DAYS = 10;
const DAY_MS = 86_400_000;

/**
 * Finds what is in suspense and a report makes up for: of the same amount, in the other direction,
 * within ten days, where one of the two is a bank's correction.
 * @param reason of the report
 * @param at its day, `YYYY-MM-DD`
 */
export function findCorrected(
  movements: readonly Movement[],
  report: MovementReport,
  { reason, at }: { reason: MovementReason; at: string },
): Movement | undefined {
  if (report.amount === undefined || identify(movements, report).kind !== 'new') return undefined;
  return movements.find((movement) => {
    const { direction, value_date, reported_at } = movement;
    const day = value_date ?? reported_at.slice(0, at.length);
    const rest = toUnits(movement, computeRest(movement));
    return (
      direction !== report.direction &&
      isInSuspense(movement) &&
      fits({ ...movement, amount: rest }, report) &&
      (isCorrection(reason) || isCorrection(movement.reason)) &&
      Math.abs(Date.parse(day) - Date.parse(at)) <= CORRECTED_DAYS * DAY_MS
    );
  });
}

export function hasName(
  movement: Pick<Movement, 'names' | 'bank_reference'>,
  reference: string,
): boolean {
  return movement.bank_reference === reference || movement.names.includes(reference);
}

/** Compares what a report has; the rest fits anything. */
export function fits(
  movement: Pick<Movement, 'amount' | 'currency'>,
  { amount = movement.amount, currency = movement.currency }: Partial<MovementReport>,
): boolean {
  return BigInt(movement.amount) === BigInt(amount) && movement.currency === currency;
}

export function findMovement(
  movements: readonly Movement[],
  report: MovementReport,
): Movement | undefined {
  const identity = identify(movements, report);
  return identity.kind === 'new' ? undefined : identity.movement;
}

/**
 * Lists what an act of the resource takes: one movement, or by default all of its currency.
 * @param id of the one that the operator names
 */
export function listTakeable(
  movements: readonly Movement[],
  { direction, currency, id }: { direction: Direction; currency: string; id?: string | undefined },
): Movement[] {
  return movements.filter(
    (movement) =>
      isInSuspense(movement) &&
      movement.direction === direction &&
      movement.currency === currency &&
      (id === undefined || movement.id === id),
  );
}

/** Smallest units. */
export function sumRests(movements: readonly Movement[]): bigint {
  return movements.reduce((sum, movement) => sum + computeRest(movement), 0n);
}

/** Part of a movement that an entry of its resource takes out of suspense. */
export interface Taken {
  id: string;
  amount: Units;
}

/** Takes at most `most` smallest units, the oldest first. */
export function take(movements: readonly Movement[], most: bigint): Taken[] {
  let left = most;
  return movements.flatMap((movement): Taken[] => {
    const rest = computeRest(movement);
    const part = rest < left ? rest : left;
    left -= part;
    return part === 0n ? [] : [{ id: movement.id, amount: toUnits(movement, part) }];
  });
}

export function applyTaken(movements: readonly Movement[], taken: readonly Taken[]): Movement[] {
  const parts = new Map(taken.map(({ id, amount }) => [id, amount]));
  return movements.map((movement) => {
    const part = parts.get(movement.id);
    if (part === undefined) return movement;
    return { ...movement, applied: toUnits(movement, BigInt(movement.applied) + BigInt(part)) };
  });
}

/** Adds rows that a write has made, or replaces those that it has changed. */
export function mergeMovements(
  movements: readonly Movement[],
  rows: readonly Movement[] = [],
): Movement[] {
  const changed = new Map(rows.map((row) => [row.id, row]));
  const known = movements.map((movement) => changed.get(movement.id) ?? movement);
  const ids = new Set(movements.map(({ id }) => id));
  return [...known, ...rows.filter(({ id }) => !ids.has(id))];
}

/** Lists what was sent and is in suspense, which the failure of its resource resolves. */
export function listReleased(movements: readonly Movement[]): Movement[] {
  return movements.filter((movement) => movement.direction === 'out' && isInSuspense(movement));
}

/** Instruction that sends late funds back; each movement has its own. */
export function reversalId(payment_id: string, movements: readonly Movement[], id: string): string {
  const first = movements.find(({ reason }) => reason === 'late');
  return first?.id === id ? `reversal:${payment_id}` : `reversal:${payment_id}:${id}`;
}

/**
 * Names a movement by the bank's reference, and by the place in it where the bank booked several
 * movements under one: `REF#entry.part`. Connectors and statements name the same movement alike.
 * @see docs/ledger.md#bank-movements
 */
export function nameMovement({
  bank_reference,
  position,
}: Pick<StatementLine, 'bank_reference' | 'position'>): string | null {
  if (bank_reference === null || position === undefined) return bank_reference;
  return `${bank_reference}#${position}`;
}
