import type {
  CryptoCallback,
  CryptoPaymentCallbackName,
  CryptoSettlementCallbackName,
} from '../crypto/callback';
import { currencyCode, day, type Faults, instant, integer, object, text } from '../shape';

/** Signals of the `payment` workflow. Only additions are allowed: connector teams rely on them. */
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

/** Kinds of resource that have a workflow, in display order. */
export const CALLBACK_RESOURCES = [...BANK_RESOURCES, ...CRYPTO_RESOURCES] as const;
export type CallbackResource = (typeof CALLBACK_RESOURCES)[number];
export type CallbackName =
  | BankCallbackName
  | CryptoPaymentCallbackName
  | CryptoSettlementCallbackName;

export type AnyCallback = BankCallback | CryptoCallback;

/**
 * A bank's report about one of our resources, the payload of every signal. The signal's name is the
 * event. A `callback_id` is applied once.
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
  /** Up to 500 characters. Never personal, because Temporal's history contains it. */
  reason?: string | undefined;
  /** Minor units that actually move, 1 to 99,999,999,999; absent: the requested amount. */
  amount?: number | undefined;
  /** ISO 4217. */
  currency?: string | undefined;
  /** Day on which the bank posts it: `YYYY-MM-DD`. */
  value_date?: string | undefined;
}

/** Largest amount, in minor units. @see docs/api.md#money-json-text */
export const AMOUNT_MAX = 99_999_999_999;

/**
 * Describes how the money in a bank's report differs from the request; undefined if it does not
 * differ or the report has no amount. @see docs/ledger.md#money-that-goes-wrong
 */
export function describeDifference(
  { amount, currency }: Pick<BankCallback, 'amount' | 'currency'>,
  request: { amount: number; currency: string },
): string | undefined {
  const report = { amount: amount ?? request.amount, currency: currency ?? request.currency };
  if (report.amount === request.amount && report.currency === request.currency) return undefined;
  const [reportText, requestText] = [report, request].map(
    (money) => `${money.amount} ${money.currency}`,
  );
  return `the bank reports ${reportText} instead of ${requestText} (minor units)`;
}

/** Failure with the bank's reason, or the one for a bank that gives none. */
export function describeFailure(
  { code, reason }: Pick<AnyCallback, 'code' | 'reason'>,
  defaultFailure: { code: string; message: string },
) {
  return { code: code ?? defaultFailure.code, message: reason ?? defaultFailure.message };
}

/**
 * Parses a signal's payload without throwing, by the same rules as `BankCallback` in
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
