import { omitUndefined } from '../defined';
import {
  classify,
  type Deposit,
  isAnyPending,
  isConfirmed,
  isCounted,
  isHeldByScreening,
  isHeldLate,
  isInSuspense,
  isReorged,
  isWaiting,
} from './deposit';
import type { DepositChange, DepositSet } from './deposit-set';
import type { CryptoPaymentAct } from './payment';

export interface ActTarget {
  /** Absent: all deposits to which the act applies. */
  deposit?: string | undefined;
  /** Deposit to `confirm`, or transaction that sent it back. */
  transaction_id?: string | undefined;
  /** Address to which it was sent back. */
  address?: string | undefined;
}

interface DepositAct {
  applies: (deposit: Deposit) => boolean;
  change: (deposit: Deposit, target: ActTarget) => Deposit;
  fault?: string;
}

type DepositActName = Exclude<CryptoPaymentAct, 'snooze' | 'acknowledge'>;

const DEPOSIT_ACTS: Record<Exclude<DepositActName, 'accept'>, DepositAct> = {
  release: {
    applies: isHeldByScreening,
    change: (deposit) => classify({ ...deposit, screening: 'passed' }),
    fault: 'No deposit is held by its screening.',
  },
  reject: {
    applies: isWaiting,
    change: (deposit) => ({ ...deposit, status: 'rejected', held: true }),
    fault: 'No deposit waits for an operator.',
  },
  credit_late: {
    applies: isHeldLate,
    change: (deposit) => ({ ...deposit, status: 'confirmed' }),
    fault: 'No late deposit waits to be credited.',
  },
  return: {
    applies: (deposit) => isCounted(deposit) && !deposit.reorged,
    change: (deposit) => ({ ...deposit, status: 'rejected', returned: true, withdrawn: true }),
    fault: 'No deposit has counted.',
  },
  mark_sent_back: {
    applies: isInSuspense,
    change: (deposit, { transaction_id, address }) => ({
      ...deposit,
      status: 'rejected',
      left: { as: 'returned', ...omitUndefined({ transaction_id, address }) },
    }),
    fault: 'No deposit is in suspense.',
  },
  write_off: {
    applies: (deposit) => isInSuspense(deposit) || isReorged(deposit),
    change: (deposit) => ({
      ...deposit,
      status: isReorged(deposit) ? 'confirmed' : 'rejected',
      left: { as: 'written_off' },
    }),
    fault: 'No deposit is in suspense, and none that was credited is gone.',
  },
  debit_reorged: {
    applies: isReorged,
    change: (deposit) => ({ ...deposit, status: 'rejected', returned: true }),
    fault: 'No deposit that was credited is gone from the chain.',
  },
  confirm: {
    applies: (deposit) => deposit.status === 'pending' && !isConfirmed(deposit),
    change: (deposit) => {
      const confirmations = Math.max(deposit.confirmations, deposit.required_confirmations);
      // Without a verdict it still waits for its screening.
      return classify({ ...deposit, confirmations });
    },
    fault: 'No deposit of this transaction waits for its confirmations.',
  },
};

function isTarget(act: DepositActName, target: ActTarget, { transaction_id }: Deposit): boolean {
  const named = act === 'confirm' ? (target.transaction_id ?? '') : target.deposit;
  return named === undefined || named === transaction_id;
}

export function actOnDeposits(
  depositSet: DepositSet,
  act: DepositActName,
  target: ActTarget = {},
): DepositChange {
  const { deposits } = depositSet;
  if (act === 'accept') return { kind: 'changed', deposits: [...deposits], accepted: true };
  const { applies, change } = DEPOSIT_ACTS[act];
  const changed = deposits.map((deposit) =>
    applies(deposit) && isTarget(act, target, deposit) ? change(deposit, target) : deposit,
  );
  return { kind: 'changed', deposits: changed };
}

/**
 * @returns undefined if the act is possible
 * @param isOpen whether the payer still has time
 */
export function depositActFault(
  { deposits }: Pick<DepositSet, 'deposits'>,
  act: CryptoPaymentAct,
  isOpen: boolean,
  target?: ActTarget,
): string | undefined {
  if (act === 'accept' || act === 'snooze' || act === 'acknowledge') return undefined;
  if (act === 'return' && isOpen) {
    return 'The payer may still send the rest: wait until the window closes.';
  }
  if (act === 'return' && isAnyPending(deposits)) return 'A deposit is not confirmed yet.';
  const { applies, fault } = DEPOSIT_ACTS[act];
  const isPossible = (deposit: Deposit) =>
    applies(deposit) && (target === undefined || isTarget(act, target, deposit));
  return deposits.some(isPossible) ? undefined : fault;
}
