import type {
  CryptoCallback,
  CryptoPaymentCallbackName,
  CryptoSettlementCallbackName,
} from './crypto-callback';
import { currencyCode, day, type Faults, instant, integer, object, text } from './shape';

/** Signals of the `payment` workflow, changed only by addition as connector teams rely on them. */
export const PAYMENT_CALLBACKS = [
  'authorized',
  'settled',
  'failed',
  'expired',
  'reversed',
  'reversal_failed',
  'clawed_back',
] as const;
export type PaymentCallbackName = (typeof PAYMENT_CALLBACKS)[number];

/** Signals of the `refund` workflow. */
export const REFUND_CALLBACKS = ['settled', 'failed'] as const;
export type RefundCallbackName = (typeof REFUND_CALLBACKS)[number];

/** Signals of the `payout` workflow. */
export const PAYOUT_CALLBACKS = ['submitted', 'sent', 'completed', 'failed', 'returned'] as const;
export type PayoutCallbackName = (typeof PAYOUT_CALLBACKS)[number];

/** Kinds of resource that banks report about. */
export const BANK_RESOURCES = ['payment', 'refund', 'payout'] as const;
export type BankResource = (typeof BANK_RESOURCES)[number];
type BankCallbackName = PaymentCallbackName | RefundCallbackName | PayoutCallbackName;

/** Kinds of resource that crypto connectors report about. */
export const CRYPTO_RESOURCES = ['crypto_payment', 'crypto_settlement'] as const;

/** Kinds of resource that have a workflow, in the order of lists. */
export const CALLBACK_RESOURCES = [...BANK_RESOURCES, ...CRYPTO_RESOURCES] as const;
export type CallbackResource = (typeof CALLBACK_RESOURCES)[number];
export type CallbackName =
  | BankCallbackName
  | CryptoPaymentCallbackName
  | CryptoSettlementCallbackName;

/** Payload of any signal. */
export type AnyCallback = BankCallback | CryptoCallback;

/**
 * Report of a bank about one of our resources, the payload of every signal. The signal's name tells
 * what happened. A callback counts once by its `callback_id`.
 */
export interface BankCallback {
  /** 1 to 200 characters. */
  callback_id: string;
  /** ISO 8601 with an offset. */
  occurred_at: string;
  /** Up to 200 characters. */
  bank_reference?: string | undefined;
  /** Up to 100 characters. */
  code?: string | undefined;
  /** Up to 500 characters, nothing personal, since it stands in Temporal's history. */
  reason?: string | undefined;
  /** Minor units that really move, 1 to 99,999,999,999; absent: as it was asked. */
  amount?: number | undefined;
  /** ISO 4217. */
  currency?: string | undefined;
  /** Day on which the bank books it: `YYYY-MM-DD`. */
  value_date?: string | undefined;
}

/** Largest amount, in minor units. @see docs/api.md#money-json-text */
export const AMOUNT_MAX = 99_999_999_999;

/**
 * Says in which money a bank's report differs from what was asked; undefined where it agrees, or
 * does not say. @see docs/ledger.md#money-that-goes-wrong
 */
export function differenceOf(
  { amount, currency }: Pick<BankCallback, 'amount' | 'currency'>,
  asked: { amount: number; currency: string },
): string | undefined {
  const told = { amount: amount ?? asked.amount, currency: currency ?? asked.currency };
  if (told.amount === asked.amount && told.currency === asked.currency) return undefined;
  const [theirs, ours] = [told, asked].map((money) => `${money.amount} ${money.currency}`);
  return `the bank says ${theirs}, and ${ours} was asked for (minor units)`;
}

/**
 * Reads a signal's payload and never throws; its rules equal those of `BankCallback` in
 * `wire/callback`.
 */
export function readCallback(raw: unknown): BankCallback | Faults {
  return object<BankCallback>(raw, {
    callback_id: text({ min: 1, max: 200 }),
    occurred_at: instant,
    bank_reference: text({ max: 200, optional: true }),
    code: text({ max: 100, optional: true }),
    reason: text({ max: 500, optional: true }),
    amount: integer({ min: 1, max: AMOUNT_MAX, optional: true }),
    currency: currencyCode,
    value_date: day,
  });
}
