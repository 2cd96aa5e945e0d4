import type { EventType } from '../events/event';
import type { CommonAttention } from '../lifecycle';

/** @see docs/api.md#states-of-a-crypto-payment */
export const CRYPTO_PAYMENT_STATUSES = [
  /** Waits for the payer, or for confirmations. */
  'awaiting_deposit',
  /** Confirmed deposits are less than the amount due; more may arrive in the window. */
  'underpaid',
  /** A deposit failed screening and waits for an operator. */
  'held',
  /** Confirmed deposits reach the amount due. Final. */
  'received',
  /** The window closed without a counted deposit. Changes only if late funds are credited. */
  'expired',
] as const;

export type CryptoPaymentStatus = (typeof CRYPTO_PAYMENT_STATUSES)[number];

/** A transition to the same state means that deposits changed. */
export const CRYPTO_PAYMENT_TRANSITIONS = {
  awaiting_deposit: ['awaiting_deposit', 'underpaid', 'held', 'received', 'expired'],
  underpaid: ['underpaid', 'awaiting_deposit', 'held', 'received', 'expired'],
  held: ['held', 'awaiting_deposit', 'underpaid', 'received', 'expired'],
  received: ['received'],
  expired: ['expired', 'held', 'underpaid', 'received'],
} as const satisfies Record<CryptoPaymentStatus, readonly CryptoPaymentStatus[]>;

/** Emitted when the state is first reached. */
export const CRYPTO_PAYMENT_EVENTS = {
  awaiting_deposit: undefined,
  underpaid: 'crypto.payment.underpaid',
  held: 'crypto.payment.held',
  received: 'crypto.payment.received',
  expired: 'crypto.payment.expired',
} as const satisfies Record<CryptoPaymentStatus, EventType | undefined>;

export const CRYPTO_PAYMENT_IN_FLIGHT = [
  'awaiting_deposit',
  'underpaid',
  'held',
] as const satisfies readonly CryptoPaymentStatus[];

export const CRYPTO_PAYMENT_ACTS = [
  'release',
  'reject',
  'accept',
  'return',
  'credit_late',
  'resolve_movement',
  'confirm',
  'snooze',
  'acknowledge',
] as const;
export type CryptoPaymentAct = (typeof CRYPTO_PAYMENT_ACTS)[number];

/** Values of `ServiceAttention`. */
export type CryptoPaymentAttention =
  | 'deposit_held'
  | 'late_deposit'
  | 'deposit_to_return'
  | 'underpaid'
  | 'deposit_undone'
  | 'deposit_unconfirmed'
  | 'amount_differs'
  | 'too_many_deposits'
  | 'wrong_asset'
  | 'address_in_use'
  | CommonAttention;

export function cryptoPaymentWorkflowId(cryptoPaymentId: string): string {
  return `crypto-payment:${cryptoPaymentId}`;
}
