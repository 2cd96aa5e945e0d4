/** Money after the end, in another amount or currency, or after another settlement. */
export type ReceiptReason = 'late' | 'amount_differs' | 'second_settlement';

/**
 * Money for a payment that is not its settlement. It is in suspense until it is credited to the
 * merchant, or back with the customer.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export interface Receipt {
  /** Bank reference, or id of the callback without one: identifies a repeat. */
  id: string;
  bank_reference: string | null;
  /** Null while no callback reported it. */
  callback_id: string | null;
  /** Minor units. */
  amount: number;
  currency: string;
  /** `YYYY-MM-DD`. */
  value_date: string | null;
  received_at: string;
  reason: ReceiptReason;
  state: 'suspense' | 'credited' | 'returned';
  returned_at?: string;
  /** Bank reference or callback id of the report. */
  returned_by?: string;
}

/** The bank's name for reported money, or the id of the only report. */
export function reportId(report: {
  bank_reference?: string | null | undefined;
  callback_id: string;
}): string {
  return report.bank_reference || report.callback_id;
}

export function isInSuspense({ state }: Pick<Receipt, 'state'>): boolean {
  return state === 'suspense';
}

/** A payment with money in question must neither expire nor be cancelled. */
export function holdsMoney({ receipts = [] }: { receipts?: readonly Receipt[] | null }): boolean {
  return (receipts ?? []).some(isInSuspense);
}

/** Lists what `mark_settled` credits. */
export function listCreditable(receipts: readonly Receipt[], currency: string): Receipt[] {
  return receipts.filter((receipt) => isInSuspense(receipt) && receipt.currency === currency);
}

export function markCredited(receipts: readonly Receipt[], ids: readonly string[] = []): Receipt[] {
  return receipts.map((receipt) =>
    ids.includes(receipt.id) ? { ...receipt, state: 'credited' } : receipt,
  );
}

export function sumAmounts(receipts: readonly Pick<Receipt, 'amount'>[]): number {
  return receipts.reduce((sum, { amount }) => sum + amount, 0);
}

/** Instruction that sends late funds back; each receipt has its own. */
export function reversalId(payment_id: string, receipts: readonly Receipt[], id: string): string {
  const first = receipts.find(({ reason }) => reason === 'late');
  return first?.id === id ? `reversal:${payment_id}` : `reversal:${payment_id}:${id}`;
}

interface Report {
  callback_id: string | null;
  bank_reference?: string | null | undefined;
  amount?: number | undefined;
  currency?: string | undefined;
}

/**
 * Finds money that a report repeats. Late funds that a response of the bank confirmed are those of
 * its first matching callback.
 */
export function findReported(
  receipts: readonly Receipt[],
  { callback_id, bank_reference, amount, currency }: Report,
): Receipt | undefined {
  if (callback_id === null) return receipts.find(({ reason }) => reason === 'late');
  const id = reportId({ callback_id, bank_reference });
  return (
    receipts.find((receipt) => receipt.id === id || receipt.callback_id === callback_id) ??
    receipts.find(
      (receipt) =>
        receipt.callback_id === null &&
        findOfAmount([receipt], receipt.state, { amount, currency }) !== undefined,
    )
  );
}

/** Oldest first. */
export function findOfAmount(
  receipts: readonly Receipt[],
  state: Receipt['state'],
  { amount, currency }: Pick<Report, 'amount' | 'currency'>,
): Receipt | undefined {
  return receipts.find(
    (receipt) =>
      receipt.state === state &&
      (amount ?? receipt.amount) === receipt.amount &&
      (currency ?? receipt.currency) === receipt.currency,
  );
}
