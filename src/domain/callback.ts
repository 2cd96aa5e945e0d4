import { type Faults, instant, object, text } from './shape';

/** Signals of the `payment` workflow. Contract with connector teams: changed only by addition. */
export const PAYMENT_CALLBACKS = ['authorized', 'settled', 'failed', 'expired'] as const;
export type PaymentCallbackName = (typeof PAYMENT_CALLBACKS)[number];

/** Signals of the `refund` workflow. */
export const REFUND_CALLBACKS = ['settled', 'failed'] as const;
export type RefundCallbackName = (typeof REFUND_CALLBACKS)[number];

/** Signals of the `payout` workflow. */
export const PAYOUT_CALLBACKS = ['submitted', 'sent', 'completed', 'failed', 'returned'] as const;
export type PayoutCallbackName = (typeof PAYOUT_CALLBACKS)[number];

/** What banks report about. */
export type CallbackResource = 'payment' | 'refund' | 'payout';
export type CallbackName = PaymentCallbackName | RefundCallbackName | PayoutCallbackName;

/**
 * What a bank says about one of our resources: the payload of every signal. The signal's name is
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
  /** Up to 500 characters. Nothing personal: it stands in Temporal's history. */
  reason?: string | undefined;
}

/** Reads a signal's payload; never throws. The same rules as `BankCallback` in `wire/callback`. */
export function readCallback(raw: unknown): BankCallback | Faults {
  return object<BankCallback>(raw, {
    callback_id: text({ min: 1, max: 200 }),
    occurred_at: instant,
    bank_reference: text({ max: 200, optional: true }),
    code: text({ max: 100, optional: true }),
    reason: text({ max: 500, optional: true }),
  });
}
