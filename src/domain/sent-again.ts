/**
 * Payment of the bank in addition to the instructed one.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export interface SentAgain {
  /** Bank reference, or id of the callback without one. */
  id: string;
  /** Minor units. */
  amount: number;
  currency: string;
  /** ISO 8601, ms. */
  at: string;
}

interface Resource {
  bank_reference: string | null;
  applied_callbacks?: string[];
  sent_again?: readonly SentAgain[];
}

export function isSentAgain(
  { bank_reference, applied_callbacks = [] }: Resource,
  report: { bank_reference?: string | undefined; callback_id: string },
): boolean {
  if (!report.bank_reference || applied_callbacks.includes(report.callback_id)) return false;
  return bank_reference !== null && report.bank_reference !== bank_reference;
}
