import type { PayoutStatus } from './payout';

/**
 * Money that came back and is not credited: a different amount, too late, on a rail without
 * returns, or once more.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export interface HeldReturn {
  /** Bank reference, or id of the callback without one: identifies a repeat. */
  id: string;
  /** Minor units. */
  amount: number;
  currency: string;
  /** ISO 8601, ms. */
  at: string;
  /** `mark_returned` credits it; otherwise an operator corrects the balance. */
  is_return: boolean;
  /** An operator has reversed its entry. */
  reversed_at?: string;
}

interface Payout {
  status: PayoutStatus;
  currency: string;
  bank_reference: string | null;
  applied_callbacks?: readonly string[];
  audit: readonly { what: string }[];
  returns_held?: readonly HeldReturn[] | undefined;
}

/** Minor units that `mark_returned` credits. */
export function sumHeldReturns({ returns_held = [] }: Pick<Payout, 'returns_held'>): number {
  return returns_held
    .filter(({ is_return, reversed_at }) => is_return && reversed_at === undefined)
    .reduce((sum, { amount }) => sum + amount, 0);
}

export function holdsReturn(payout: Pick<Payout, 'status' | 'returns_held'>): boolean {
  return canReturn(payout.status) && sumHeldReturns(payout) > 0;
}

/** Excludes the credited return, and payouts that never left. */
export function isNewReturn(
  { status, bank_reference, applied_callbacks = [], audit }: Payout,
  report: { callback_id: string; bank_reference?: string | undefined },
): boolean {
  if (status === 'failed' || applied_callbacks.includes(report.callback_id)) return false;
  if (status !== 'returned') return true;
  // The bank reports what an operator has credited.
  if (audit.some(({ what }) => what === 'mark_returned')) return false;
  return Boolean(report.bank_reference) && report.bank_reference !== bank_reference;
}

export function buildHeldReturn(
  { status, currency }: Pick<Payout, 'status' | 'currency'>,
  held: Omit<HeldReturn, 'is_return'>,
): HeldReturn {
  return { ...held, is_return: canReturn(status) && held.currency === currency };
}

function canReturn(status: PayoutStatus): boolean {
  return status === 'sent' || status === 'completed';
}
