/** @see docs/api.md#balances */
export const BALANCE_TRANSACTION_TYPES = [
  'payment',
  'refund',
  'refund_failure',
  'payout',
  'payout_failure',
  'payout_return',
  'chargeback',
  'chargeback_reversal',
  'funding',
  'adjustment',
  'crypto_payment',
  'crypto_settlement',
  'crypto_settlement_failure',
] as const;

export type BalanceTransactionType = (typeof BALANCE_TRANSACTION_TYPES)[number];
