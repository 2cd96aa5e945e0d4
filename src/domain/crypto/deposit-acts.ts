import { assertNever } from '../assert';
import { type DepositReason, isInSuspense, type Movement, type Outcome } from '../banks/movement';
import { omitUndefined } from '../defined';
import { type Deposit, isAnyPending, isConfirmed } from './deposit';
import { type Decided, type DepositStep, findDepositMovement, judge } from './deposit-money';
import { type DepositChange, type DepositSet, replaceDeposit } from './deposit-set';
import type { CryptoPaymentAct } from './payment';

export interface ActTarget {
  /** Deposit to `confirm`, or transaction that sent it back. */
  transaction_id?: string | undefined;
  /** Address to which it was sent back. */
  address?: string | undefined;
}

interface DepositAct {
  /** @param movement of the deposit @param target undefined: any */
  applies: (
    deposit: Deposit,
    movement: Movement | undefined,
    target: ActTarget | undefined,
  ) => boolean;
  decide: (deposit: Deposit) => Decided;
  fault: string;
}

const isHeldAs =
  (...reasons: DepositReason[]): DepositAct['applies'] =>
  (_, movement) =>
    movement !== undefined &&
    isInSuspense(movement) &&
    reasons.some((reason) => reason === movement.reason);

type DepositActName = Exclude<CryptoPaymentAct, 'resolve_movement' | 'snooze' | 'acknowledge'>;

const DEPOSIT_ACTS: Record<Exclude<DepositActName, 'accept'>, DepositAct> = {
  release: {
    applies: isHeldAs('deposit_held'),
    // A late one still waits to be credited.
    decide: (deposit) => {
      const { key, late } = deposit;
      const passed = { ...deposit, screening: 'passed' } as const;
      return late
        ? build(passed, { step: 'noted', deposit: key, reason: 'late_deposit' })
        : build({ ...passed, status: 'confirmed' }, { step: 'credited', deposit: key });
    },
    fault: 'No deposit is held by its screening.',
  },
  reject: {
    applies: isHeldAs('deposit_held', 'late_deposit'),
    decide: (deposit) => {
      const { key } = deposit;
      const toReturn = { step: 'noted', deposit: key, reason: 'deposit_to_return' } as const;
      return build({ ...deposit, status: 'rejected' }, toReturn);
    },
    fault: 'No deposit waits for an operator.',
  },
  credit_late: {
    applies: isHeldAs('late_deposit'),
    decide: (deposit) =>
      build({ ...deposit, status: 'confirmed' }, { step: 'credited', deposit: deposit.key }),
    fault: 'No late deposit waits to be credited.',
  },
  return: {
    applies: ({ status }, movement) =>
      status === 'confirmed' && movement !== undefined && BigInt(movement.applied) > 0n,
    decide: (deposit) =>
      build({ ...deposit, status: 'rejected' }, { step: 'withdrawn', deposit: deposit.key }),
    fault: 'No deposit has counted.',
  },
  confirm: {
    applies: (deposit, _, target = deposit) =>
      deposit.status === 'pending' &&
      !isConfirmed(deposit) &&
      deposit.transaction_id === target.transaction_id,
    decide: (deposit) => {
      const confirmations = Math.max(deposit.confirmations, deposit.required_confirmations);
      // Without a verdict it still waits for its screening.
      return judge({ ...deposit, confirmations });
    },
    fault: 'No deposit of this transaction waits for its confirmations.',
  },
};

function build(deposit: Deposit, step: DepositStep): Decided {
  return { deposit, steps: [step] };
}

export function actOnDeposits(
  { deposits, movements }: Pick<DepositSet, 'deposits' | 'movements'>,
  name: DepositActName,
  target: ActTarget = {},
): DepositChange {
  if (name === 'accept') {
    return { kind: 'changed', deposits: [...deposits], steps: [], accepted: true };
  }
  const { applies, decide } = DEPOSIT_ACTS[name];
  const decided = deposits.map((deposit): Decided => {
    const movement = findDepositMovement(movements, deposit);
    return applies(deposit, movement, target) ? decide(deposit) : { deposit, steps: [] };
  });
  return {
    kind: 'changed',
    deposits: decided.map(({ deposit }) => deposit),
    steps: decided.flatMap(({ steps }) => steps),
  };
}

/**
 * @returns undefined if the act is possible
 * @param isOpen whether the payer still has time
 */
export function depositActFault(
  { deposits, movements }: Pick<DepositSet, 'deposits' | 'movements'>,
  name: CryptoPaymentAct,
  isOpen: boolean,
  target?: ActTarget,
): string | undefined {
  // The movement decides whether it can be resolved.
  if (name === 'accept' || name === 'resolve_movement') return undefined;
  if (name === 'snooze' || name === 'acknowledge') return undefined;
  if (name === 'return' && isOpen) {
    return 'The payer may still send the rest: wait until the window closes.';
  }
  if (name === 'return' && isAnyPending(deposits)) return 'A deposit is not confirmed yet.';
  const { applies, fault } = DEPOSIT_ACTS[name];
  const isPossible = (deposit: Deposit) =>
    applies(deposit, findDepositMovement(movements, deposit), target);
  return deposits.some(isPossible) ? undefined : fault;
}

/**
 * Says why what is in suspense can't be resolved so. What is credited, and gone from the chain, is
 * borne by the merchant or is a loss; the others are never the merchant's, but by an act of the
 * payment.
 */
export function findResolutionFault(
  { reason }: Pick<Movement, 'reason'>,
  as: Outcome,
): string | undefined {
  if (reason === 'deposit_undone') {
    const isBorne = as === 'merchant' || as === 'loss';
    return isBorne
      ? undefined
      : 'The chain has removed it: the merchant bears it, or it is a loss.';
  }
  if (as === 'bank') return 'No bank has a deposit: send it back to the customer.';
  if (as !== 'merchant') return undefined;
  if (reason === 'deposit_held') return 'The payment itself can take it: `release`.';
  if (reason === 'late_deposit') return 'The payment itself can take it: `credit_late`.';
  return 'It is to go back: the merchant can’t have it any more.';
}

/** Lets all of what is in suspense, or is gone, leave. @param back how the customer has it */
export function resolveDeposit(
  { deposits }: Pick<DepositSet, 'deposits'>,
  movement: Movement,
  as: Outcome,
  back: ActTarget = {},
): DepositChange {
  const deposit = deposits.find((each) => findDepositMovement([movement], each) !== undefined);
  if (deposit === undefined) throw new Error(`No deposit has the movement ${movement.id}.`);
  const isCredited = as === 'loss' && movement.reason === 'deposit_undone';
  const status = isCredited ? 'confirmed' : 'rejected';
  return replaceDeposit({ deposits }, { ...deposit, status }, [buildStep(deposit, as, back)]);
}

function buildStep({ key: deposit }: Deposit, as: Outcome, back: ActTarget): DepositStep {
  switch (as) {
    case 'merchant':
      return { step: 'returned', deposit };
    case 'loss':
      return { step: 'written_off', deposit };
    case 'customer':
      return { step: 'sent_back', deposit, as, ...omitUndefined(back) };
    case 'never_happened':
      return { step: 'sent_back', deposit, as };
    case 'bank':
      throw new Error('No bank has a deposit.');
    default:
      return assertNever(as);
  }
}
