import { assertNever } from '../assert';
import { parseUnits } from './assets';
import type { CryptoCallback, CryptoPaymentCallbackName } from './callback';
import type { Deposit } from './deposit';

export const SIMULATED_DEPOSITS = [
  'deposit',
  'received',
  'underpaid',
  'held',
  'deposit_undone',
  'expired',
] as const;
type SimulatedEvent = (typeof SIMULATED_DEPOSITS)[number];

export interface SimulatedDeposit {
  event?: SimulatedEvent | null | undefined;
  /** Smallest units; absent: the event decides. */
  amount?: string | null | undefined;
  confirmations?: number | null | undefined;
  /** Absent: a new deposit, or the last one for `deposit_undone`. */
  transaction_id?: string | null | undefined;
  code?: string | null | undefined;
  reason?: string | null | undefined;
}

interface SimulatedPayment {
  amount_due: string;
  amount_received: string;
  required_confirmations: number;
  deposits: readonly Pick<Deposit, 'transaction_id' | 'amount' | 'seen_at'>[];
}

interface Defaults {
  transaction_id: string;
  now: string;
}

interface Report {
  name: CryptoPaymentCallbackName;
  callback: Omit<CryptoCallback, 'callback_id'>;
}

export function simulateReport(
  { deposits, required_confirmations, ...payment }: SimulatedPayment,
  request: SimulatedDeposit,
  defaults: Defaults,
): Report {
  const { code, reason } = request;
  const event = request.event ?? 'deposit';
  const why = { code: code ?? undefined, reason: reason ?? undefined };
  switch (event) {
    case 'expired':
      return { name: event, callback: { occurred_at: defaults.now, ...why } };
    case 'deposit_undone': {
      const last = deposits.at(-1)?.transaction_id;
      const transaction_id = request.transaction_id ?? last ?? defaults.transaction_id;
      return { name: event, callback: { occurred_at: defaults.now, transaction_id, ...why } };
    }
    case 'deposit':
    case 'received':
    case 'underpaid':
    case 'held': {
      const transaction_id = request.transaction_id ?? defaults.transaction_id;
      const existing = deposits.find((deposit) => deposit.transaction_id === transaction_id);
      const due = parseUnits(payment.amount_due);
      const rest = due - parseUnits(payment.amount_received);
      const missing = rest > 0n ? rest : due;
      const amount = event === 'underpaid' && missing > 1n ? missing / 2n : missing;
      // The sandbox chain screens existing transactions.
      const verdict = existing !== undefined && event === 'deposit' ? undefined : 'passed';
      const deposit = {
        // The first sight of a deposit decides whether it is late.
        occurred_at: existing?.seen_at ?? defaults.now,
        transaction_id,
        amount: request.amount ?? existing?.amount ?? String(amount),
        confirmations: request.confirmations ?? required_confirmations,
        screening: event === 'held' ? 'failed' : verdict,
      } as const;
      return { name: 'deposit', callback: { ...deposit, ...why } };
    }
    default:
      return assertNever(event);
  }
}
