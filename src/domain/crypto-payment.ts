import type { EventType } from './event';

/** States of a crypto payment. @see docs/api.md#states-of-a-crypto-payment */
export const CRYPTO_PAYMENT_STATUSES = [
  /** Waits for the payer; a deposit may have been seen that is not confirmed yet. */
  'awaiting_deposit',
  /** Confirmed deposits are less than is due; more may come until the window closes. */
  'underpaid',
  /** A deposit failed screening, and waits for an operator. */
  'held',
  /** Confirmed deposits reach what is due. Never left. */
  'received',
  /** The window closed without a deposit that counts. Left only when late money is credited. */
  'expired',
] as const;

export type CryptoPaymentStatus = (typeof CRYPTO_PAYMENT_STATUSES)[number];

/** Lawful moves; one to its own state says that deposits changed. */
export const CRYPTO_PAYMENT_MOVES = {
  awaiting_deposit: ['awaiting_deposit', 'underpaid', 'held', 'received', 'expired'],
  underpaid: ['underpaid', 'held', 'received', 'expired'],
  held: ['held', 'awaiting_deposit', 'underpaid', 'received', 'expired'],
  received: ['received'],
  expired: ['expired', 'underpaid', 'received'],
} as const satisfies Record<CryptoPaymentStatus, readonly CryptoPaymentStatus[]>;

/** Event of each state; it is told once, when the state is first reached. */
export const CRYPTO_PAYMENT_EVENTS = {
  awaiting_deposit: undefined,
  underpaid: 'crypto.payment.underpaid',
  held: 'crypto.payment.held',
  received: 'crypto.payment.received',
  expired: 'crypto.payment.expired',
} as const satisfies Record<CryptoPaymentStatus, EventType | undefined>;

/** States in which its workflow runs. */
export const CRYPTO_PAYMENT_IN_FLIGHT = [
  'awaiting_deposit',
  'underpaid',
  'held',
] as const satisfies readonly CryptoPaymentStatus[];

/** Acts that an operator may ask of a crypto payment. */
export const CRYPTO_PAYMENT_ACTS = [
  'release',
  'reject',
  'accept',
  'return',
  'credit_late',
  'snooze',
] as const;
export type CryptoPaymentAct = (typeof CRYPTO_PAYMENT_ACTS)[number];

/** Reasons why a crypto payment needs a person: the values of `ServiceAttention`. */
export type CryptoPaymentAttention =
  /** Screening failed: released or rejected by a person. */
  | 'deposit_held'
  /** A deposit came after the window had closed. */
  | 'late_deposit'
  /** The window closed with less than is due. */
  | 'underpaid'
  /** The chain took back a deposit that counts. */
  | 'deposit_undone'
  /** A deposit that was seen is still not confirmed long after the window. */
  | 'deposit_unconfirmed'
  /** A deposit that counts is now reported with another amount. */
  | 'amount_differs'
  | 'too_many_deposits'
  | 'malformed_callback'
  | 'sender_not_known';

/** Id of the workflow that runs a crypto payment's lifecycle. */
export function cryptoPaymentWorkflowId(cryptoPaymentId: string): string {
  return `crypto-payment:${cryptoPaymentId}`;
}
