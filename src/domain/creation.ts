import type { CryptoPaymentInput, CryptoSettlementInput } from './crypto/workflow';
import type { PaymentInput } from './payment/workflow';
import type { RecipientFacts } from './payout/recipient';
import type { PayoutInput } from './payout/workflow';
import type { RefundInput } from './refund/workflow';
import type { EventType } from './webhook/event';

export interface Customer {
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  reference: string | null;
}

export interface EncryptedCustomer {
  reference: string | null;
  /** Names and e-mail address, encrypted together; null if there are none or they were redacted. */
  sealed: string | null;
}

/** Fields that Temporal must not store; the idempotency record does until they are written. */
export interface PaymentRequest {
  reference: string | null;
  customer: EncryptedCustomer;
  /** JSON text, as written. */
  metadata: string;
  success_url: string;
  error_url: string;
}

export interface AcceptedPayment {
  stored: PaymentRequest;
  routing: Omit<PaymentInput, 'payment_id' | 'return_url' | 'request_id' | 'clock'>;
}

/** Fields that may be personal, which Temporal must not store. */
export interface RefundRequest {
  reason: string | null;
}

export interface AcceptedRefund {
  refund: RefundRequest;
  routing: Omit<RefundInput, 'refund_id' | 'request_id' | 'clock'>;
}

export interface PayoutRequest {
  reference: string | null;
  /** JSON text, as written. */
  metadata: string;
}

export interface AcceptedPayout {
  payout: PayoutRequest;
  routing: Omit<PayoutInput, 'payout_id' | 'request_id' | 'clock'>;
}

/** Details are encrypted before anything is written. */
export interface AcceptedRecipient {
  recipient: RecipientFacts & { last4: string; sealed: string; kid: string };
}

export type CryptoPaymentRequest = PayoutRequest;
export interface AcceptedCryptoPayment {
  crypto_payment: CryptoPaymentRequest;
  routing: Omit<CryptoPaymentInput, 'crypto_payment_id' | 'request_id' | 'clock'>;
}

export interface AcceptedCryptoSettlement {
  settlement: Omit<CryptoSettlementInput, 'crypto_settlement_id' | 'request_id' | 'clock'>;
}

/** The signing secret is encrypted before anything is written. */
interface AcceptedWebhookEndpoint {
  webhook_endpoint: {
    url: string;
    description: string | null;
    events: readonly EventType[] | 'all';
    sealed: string;
  };
}

export type AcceptedRequest =
  | AcceptedPayment
  | AcceptedRefund
  | AcceptedPayout
  | AcceptedRecipient
  | AcceptedCryptoPayment
  | AcceptedCryptoSettlement
  | AcceptedWebhookEndpoint;
