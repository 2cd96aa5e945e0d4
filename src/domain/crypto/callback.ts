import {
  bankReference,
  choice,
  type Faults,
  identifier,
  instant,
  object,
  type Rule,
  text,
  wholeNumber,
} from '../shape';
import { ASSET_CODES, UNITS } from './assets';

/** @see docs/connectors.md#crypto-connectors */
export const CRYPTO_PAYMENT_CALLBACKS = [
  'deposit',
  'deposit_undone',
  'wrong_asset',
  'expired',
] as const;
export type CryptoPaymentCallbackName = (typeof CRYPTO_PAYMENT_CALLBACKS)[number];

export const CRYPTO_SETTLEMENT_CALLBACKS = ['sent', 'completed', 'failed'] as const;
export type CryptoSettlementCallbackName = (typeof CRYPTO_SETTLEMENT_CALLBACKS)[number];

/** Payload of every signal; a `callback_id` is applied once. Never contains a payer's address. */
export interface CryptoCallback {
  callback_id: string;
  /** ISO 8601 with an offset; of a deposit: first seen. */
  occurred_at: string;
  transaction_id?: string | undefined;
  /** Smallest units, as a decimal integer. */
  amount?: string | undefined;
  /** Blocks, including its own; 0 while it is in none. */
  confirmations?: number | undefined;
  /** A deposit is in time if it was seen or mined before the window closed. */
  mined_at?: string | undefined;
  block_number?: number | undefined;
  block_hash?: string | undefined;
  screening?: 'passed' | 'failed' | undefined;
  /** Asset that came, of `wrong_asset`. */
  asset?: string | undefined;
  /** Cost of a settlement, in smallest units of the network's own asset. */
  network_fee?: string | undefined;
  bank_reference?: string | undefined;
  code?: string | undefined;
  /** Never personal: Temporal's history contains it. */
  reason?: string | undefined;
}

export const BLOCKS_MAX = 1_000_000_000_000;

export const FEE_UNITS = /^(0|[1-9]\d{0,27})$/;

function unitsLike(pattern: RegExp): Rule {
  return (value) => {
    const isValid = value === undefined || (typeof value === 'string' && pattern.test(value));
    return isValid ? undefined : 'must be an integer in the smallest unit, as a text';
  };
}

const time: Rule = (value) => (value === undefined ? undefined : instant(value));

export function readCryptoCallback(raw: unknown): CryptoCallback | Faults {
  return object<CryptoCallback>(raw, {
    callback_id: identifier,
    occurred_at: instant,
    transaction_id: text({ min: 1, max: 200, optional: true }),
    amount: unitsLike(UNITS),
    confirmations: wholeNumber(BLOCKS_MAX),
    mined_at: time,
    block_number: wholeNumber(BLOCKS_MAX),
    block_hash: text({ min: 1, max: 200, optional: true }),
    screening: choice(['passed', 'failed'], { optional: true }),
    asset: choice(ASSET_CODES, { optional: true }),
    network_fee: unitsLike(FEE_UNITS),
    bank_reference: bankReference,
    code: text({ max: 100, optional: true }),
    reason: text({ max: 500, optional: true }),
  });
}
