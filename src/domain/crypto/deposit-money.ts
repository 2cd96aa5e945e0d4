import { assertNever } from '../assert';
import {
  computeRest,
  type DepositReason,
  isInSuspense,
  type Movement,
  type Resolution,
  toUnits,
} from '../banks/movement';
import { omitUndefined } from '../defined';
import { type Deposit, isConfirmed } from './deposit';

/** Each is posted once for a deposit. @see docs/ledger.md */
export const DEPOSIT_ENTRIES = [
  'held',
  'credited',
  'returned',
  'withdrawn',
  'sent_back',
  'written_off',
] as const;
export type DepositEntry = (typeof DEPOSIT_ENTRIES)[number];

/**
 * Change of a deposit's money. Write it in the transaction that changes the deposit.
 * - `noted` posts nothing: the movement has another reason, or none, since it is credited
 */
export type DepositStep =
  | { step: 'held'; deposit: string; reason: DepositReason }
  | { step: 'noted'; deposit: string; reason: DepositReason | null }
  | { step: 'credited' | 'withdrawn'; deposit: string }
  | { step: 'returned' | 'written_off'; deposit: string }
  | SentBack;

interface SentBack {
  step: 'sent_back';
  /** Key, as of all. */
  deposit: string;
  /** The payer has it, or the chain has removed it. */
  as: 'customer' | 'never_happened';
  transaction_id?: string;
  address?: string;
}

/** Number of times that the chain had it, as its key says. @see buildDepositKey */
export function countTimes(key: string): number {
  return Number(/#(\d+)$/.exec(key)?.[1] ?? 1);
}

/** Finds its row of the register: there is none before it is confirmed and screened. */
export function findDepositMovement<Row extends Pick<Movement, 'direction' | 'sources'>>(
  movements: readonly Row[],
  { key }: Pick<Deposit, 'key'>,
): Row | undefined {
  return movements.find(
    ({ direction, sources }) => direction === 'in' && sources.some(({ id }) => id === key),
  );
}

/** Finds why its money is in suspense, or differs; null where nothing is to be decided. */
export function findDepositReason(
  movements: readonly Movement[],
  deposit: Deposit,
): Movement['reason'] {
  const movement = findDepositMovement(movements, deposit);
  return movement !== undefined && isInSuspense(movement) ? movement.reason : null;
}

/** Whether the chain has removed it, while it was credited or in suspense. */
export function isReorged(movement: Pick<Movement, 'reason' | 'resolutions'> | undefined): boolean {
  if (movement === undefined) return false;
  const { reason, resolutions } = movement;
  return reason === 'deposit_undone' || resolutions.some(({ as }) => as === 'never_happened');
}

/** Gone from the chain, and decided about: what comes again is a new movement. */
export function isGone(movements: readonly Movement[], deposit: Deposit): boolean {
  const movement = findDepositMovement(movements, deposit);
  return movement !== undefined && isReorged(movement) && !isInSuspense(movement);
}

/** Deposit after a report or an act, with what that changes about its money. */
export interface Decided {
  deposit: Deposit;
  steps: DepositStep[];
}

/** Credits or holds a deposit that no movement is about, once it is confirmed and screened. */
export function judge(deposit: Deposit): Decided {
  const { key, screening, late } = deposit;
  if (!isConfirmed(deposit) || screening === null) {
    return { deposit: { ...deposit, status: 'pending' }, steps: [] };
  }
  if (screening === 'passed' && !late) {
    const steps: DepositStep[] = [{ step: 'credited', deposit: key }];
    return { deposit: { ...deposit, status: 'confirmed' }, steps };
  }
  const reason = screening === 'failed' ? 'deposit_held' : 'late_deposit';
  return {
    deposit: { ...deposit, status: 'held' },
    steps: [{ step: 'held', deposit: key, reason }],
  };
}

type Decision = Pick<Resolution, 'operator' | 'reason' | 'at' | 'by'>;

const BORNE = {
  returned: { as: 'merchant', address: undefined },
  written_off: { as: 'loss', address: undefined },
} as const;

/** Changes its movement. What the chain has removed stays credited until an operator decides. */
export function changeMovement(
  movement: Movement,
  step: DepositStep,
  decision: Decision,
): Pick<Movement, 'applied' | 'reason' | 'resolutions' | 'is_debited'> {
  const { amount, applied, reason, resolutions } = movement;
  const nothing = toUnits(movement, 0n);
  switch (step.step) {
    case 'held':
    case 'noted':
      return { applied: step.reason === null ? amount : nothing, reason: step.reason, resolutions };
    case 'credited':
      return { applied: amount, reason, resolutions };
    case 'withdrawn':
      return { applied: nothing, reason: 'deposit_to_return', resolutions, is_debited: true };
    case 'returned':
    case 'written_off':
    case 'sent_back': {
      const amount = toUnits(movement, computeRest(movement));
      const { as, address } = step.step === 'sent_back' ? step : BORNE[step.step];
      const resolution = { as, amount, ...decision, ...omitUndefined({ address }) };
      return { applied, reason, resolutions: [...resolutions, resolution] };
    }
    default:
      return assertNever(step);
  }
}

/** Whether the merchant has it, as the register says. */
export function isCredited({
  applied,
  reason,
  resolutions,
}: Pick<Movement, 'applied' | 'reason' | 'resolutions'>): boolean {
  if (reason !== 'deposit_undone') return BigInt(applied) > 0n;
  return resolutions.every(({ as }) => as !== 'merchant');
}

/** Lists the entries of a movement, in their order. */
export function listDepositEntries(row: Movement & { entry: string }): DepositEntry[] {
  const { entry, reason, resolutions, is_debited } = row;
  const isResolvedAs = (...outcomes: Resolution['as'][]) =>
    resolutions.some(({ as }) => outcomes.includes(as));
  const isPosted: Record<DepositEntry, boolean> = {
    held: isFromSuspense({ entry }),
    credited: isCredited(row) || reason === 'deposit_undone' || is_debited === true,
    returned: isResolvedAs('merchant'),
    withdrawn: is_debited === true,
    sent_back: isResolvedAs('customer', 'never_happened'),
    written_off: isResolvedAs('loss'),
  };
  return DEPOSIT_ENTRIES.filter((each) => isPosted[each]);
}

/** Whether it was held at first. @param entry that moves `clearing.CONNECTOR` */
export function isFromSuspense({ entry }: { entry: string }): boolean {
  return entry.startsWith('crypto_payment_held:');
}
