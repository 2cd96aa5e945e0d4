import { assertNever } from './assert';
import { unitsOf } from './crypto';
import type { CryptoCallback, CryptoPaymentCallbackName } from './crypto-callback';
import type { Deposit } from './deposit';

/** Events that the sandbox chain can be asked to report of a crypto payment. */
export const SIMULATED_DEPOSITS = [
  'deposit',
  'received',
  'underpaid',
  'held',
  'deposit_undone',
  'expired',
] as const;
type SimulatedEvent = (typeof SIMULATED_DEPOSITS)[number];

/** Wish of a merchant's test suite. */
export interface SimulatedDeposit {
  /** Absent: a deposit. */
  event?: SimulatedEvent | null | undefined;
  /** Smallest units; absent: as the event says. */
  amount?: string | null | undefined;
  /** Absent: as many as make the deposit count. */
  confirmations?: number | null | undefined;
  /** Deposit that is known; absent: a new one, or the last one where it is undone. */
  transaction_id?: string | null | undefined;
  code?: string | null | undefined;
  reason?: string | null | undefined;
}

/** Facts of the payment that decide what is reported. */
interface Known {
  amount_due: string;
  amount_received: string;
  required_confirmations: number;
  deposits: readonly Pick<Deposit, 'transaction_id' | 'amount' | 'seen_at'>[];
}

interface Report {
  name: CryptoPaymentCallbackName;
  callback: Omit<CryptoCallback, 'callback_id'>;
}

/**
 * Makes the report for a wish; pure.
 * @param fresh id for a transaction that is new, and the time
 */
export function simulatedReport(
  payment: Known,
  wish: SimulatedDeposit,
  fresh: { transaction_id: string; now: string },
): Report {
  const { code, reason } = wish;
  const event = wish.event ?? 'deposit';
  const why = { code: code ?? undefined, reason: reason ?? undefined };
  switch (event) {
    case 'expired':
      return { name: 'expired', callback: { occurred_at: fresh.now, ...why } };
    case 'deposit_undone': {
      const last = payment.deposits.at(-1)?.transaction_id;
      const transaction_id = wish.transaction_id ?? last ?? fresh.transaction_id;
      return {
        name: 'deposit_undone',
        callback: { occurred_at: fresh.now, transaction_id, ...why },
      };
    }
    case 'deposit':
    case 'received':
    case 'underpaid':
    case 'held':
      return { name: 'deposit', callback: depositOf(payment, event, wish, fresh) };
    default:
      return assertNever(event);
  }
}

function depositOf(
  payment: Known,
  event: SimulatedEvent,
  wish: SimulatedDeposit,
  fresh: { transaction_id: string; now: string },
): Report['callback'] {
  const { confirmations, code, reason } = wish;
  const transaction_id = wish.transaction_id ?? fresh.transaction_id;
  const known = payment.deposits.find((deposit) => deposit.transaction_id === transaction_id);
  return {
    // A deposit counts as in time by when it was first seen.
    occurred_at: known?.seen_at ?? fresh.now,
    transaction_id,
    amount: wish.amount ?? known?.amount ?? String(amountFor(payment, event)),
    confirmations: confirmations ?? payment.required_confirmations,
    screening: verdictOf(event, known !== undefined),
    code: code ?? undefined,
    reason: reason ?? undefined,
  };
}

/** Verdict on its source; the chain itself is asked about a transaction that it may know. */
function verdictOf(event: SimulatedEvent, isKnown: boolean): CryptoCallback['screening'] {
  if (event === 'held') return 'failed';
  return isKnown && event === 'deposit' ? undefined : 'passed';
}

/** Amount that brings about the event: what is missing, or half of it. */
function amountFor({ amount_due, amount_received }: Known, event: SimulatedEvent): bigint {
  const due = unitsOf(amount_due);
  const rest = due - unitsOf(amount_received);
  const missing = rest > 0n ? rest : due;
  return event === 'underpaid' && missing > 1n ? missing / 2n : missing;
}
