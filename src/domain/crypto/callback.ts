import { type Faults, instant, object, type Rule, text, wholeNumber } from '../shape';
import { UNITS } from './assets';

/** Signals of the `cryptoPayment` workflow. @see docs/connectors.md#crypto-connectors */
export const CRYPTO_PAYMENT_CALLBACKS = ['deposit', 'deposit_undone', 'expired'] as const;
export type CryptoPaymentCallbackName = (typeof CRYPTO_PAYMENT_CALLBACKS)[number];

export const CRYPTO_SETTLEMENT_CALLBACKS = ['sent', 'completed', 'failed'] as const;
export type CryptoSettlementCallbackName = (typeof CRYPTO_SETTLEMENT_CALLBACKS)[number];

/**
 * Report of a crypto connector, the payload of every signal. A `callback_id` is applied once. Never
 * contains a payer's address.
 */
export interface CryptoCallback {
  callback_id: string;
  /** ISO 8601 with an offset; of a deposit: when it was first seen. */
  occurred_at: string;
  transaction_id?: string | undefined;
  /** Smallest units that the transaction sends to the address, as a decimal integer. */
  amount?: string | undefined;
  /** Number of blocks including its own; 0 while it is in none. */
  confirmations?: number | undefined;
  block_number?: number | undefined;
  block_hash?: string | undefined;
  screening?: 'passed' | 'failed' | undefined;
  bank_reference?: string | undefined;
  code?: string | undefined;
  /** Never personal, because Temporal's history contains it. */
  reason?: string | undefined;
}

export const BLOCKS_MAX = 1_000_000_000_000;

const units: Rule = (value) => {
  if (value === undefined) return undefined;
  const isValid = typeof value === 'string' && UNITS.test(value);
  return isValid ? undefined : 'must be an integer in the smallest unit, as a text';
};

const verdict: Rule = (value) =>
  value === undefined || value === 'passed' || value === 'failed'
    ? undefined
    : 'must be "passed" or "failed"';

export function readCryptoCallback(raw: unknown): CryptoCallback | Faults {
  return object<CryptoCallback>(raw, {
    callback_id: text({ min: 1, max: 200 }),
    occurred_at: instant,
    transaction_id: text({ min: 1, max: 200, optional: true }),
    amount: units,
    confirmations: wholeNumber(BLOCKS_MAX),
    block_number: wholeNumber(BLOCKS_MAX),
    block_hash: text({ min: 1, max: 200, optional: true }),
    screening: verdict,
    bank_reference: text({ max: 200, optional: true }),
    code: text({ max: 100, optional: true }),
    reason: text({ max: 500, optional: true }),
  });
}
