import type { CryptoPaymentInput, CryptoSettlementInput } from './crypto/workflow';
import type { PaymentInput } from './payment/workflow';
import type { RecipientFacts } from './payout/recipient';
import type { PayoutInput } from './payout/workflow';
import type { RefundInput } from './refund/workflow';

/** Payer in a merchant's request. */
export interface Customer {
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  /** The merchant's identifier of the payer. */
  reference: string | null;
}

/** Payer in the database. */
export interface EncryptedCustomer {
  reference: string | null;
  /** Names and e-mail address, encrypted together; null if there are none or they were redacted. */
  sealed: string | null;
}

/**
 * Fields of a request that Temporal must not store. The idempotency record holds them until the
 * payment is written.
 */
export interface PaymentRequest {
  reference: string | null;
  customer: EncryptedCustomer;
  /** JSON text, as written. */
  metadata: string;
  success_url: string;
  error_url: string;
}

/** An accepted request: the stored fields, and the routing chosen at acceptance. */
export interface AcceptedPayment {
  stored: PaymentRequest;
  routing: Omit<PaymentInput, 'payment_id' | 'return_url' | 'request_id'>;
}

/** Fields of a refund that may be personal, which Temporal must not store. */
export interface RefundRequest {
  reason: string | null;
}

export interface AcceptedRefund {
  refund: RefundRequest;
  routing: Omit<RefundInput, 'refund_id' | 'request_id'>;
}

/** Fields of a payout other than money and routing, as the merchant sent them. */
export interface PayoutRequest {
  reference: string | null;
  /** JSON text, as written. */
  metadata: string;
}

export interface AcceptedPayout {
  payout: PayoutRequest;
  routing: Omit<PayoutInput, 'payout_id' | 'request_id'>;
}

/** A recipient to store; its details are encrypted before anything is written. */
export interface AcceptedRecipient {
  recipient: RecipientFacts & { last4: string; sealed: string; kid: string };
}

/** Fields of a crypto payment other than money and routing, as the merchant sent them. */
export interface CryptoPaymentRequest {
  reference: string | null;
  /** JSON text, as written. */
  metadata: string;
}

export interface AcceptedCryptoPayment {
  crypto_payment: CryptoPaymentRequest;
  routing: Omit<CryptoPaymentInput, 'crypto_payment_id' | 'request_id'>;
}

export interface AcceptedCryptoSettlement {
  settlement: Omit<CryptoSettlementInput, 'crypto_settlement_id' | 'request_id'>;
}

/** Requests that an idempotency record can hold, one type for each creating operation. */
export type AcceptedRequest =
  | AcceptedPayment
  | AcceptedRefund
  | AcceptedPayout
  | AcceptedRecipient
  | AcceptedCryptoPayment
  | AcceptedCryptoSettlement;
