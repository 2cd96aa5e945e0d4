import type { CryptoPaymentInput, CryptoSettlementInput } from './crypto/workflow';
import type { EventType } from './events/event';
import type { PaymentInput } from './payment/payment';
import type { PayoutInput } from './payout/payout';
import type { RecipientFacts } from './payout/recipient';
import type { RefundInput } from './refund/refund';

export interface Customer {
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  reference: string | null;
}

export interface EncryptedCustomer {
  reference: string | null;
  /** Names and e-mail address, encrypted together; null: none, or redacted. */
  ciphertext: string | null;
}

/** Must not be in Temporal; the idempotency record has it until it is written. */
export interface PaymentRequest {
  reference: string | null;
  customer: EncryptedCustomer;
  /** JSON as written. */
  metadata: string;
  success_url: string;
  error_url: string;
}

interface AcceptedPayment {
  stored: PaymentRequest;
  routing: Omit<PaymentInput, 'payment_id' | 'return_url' | 'request_id' | 'clock'>;
}

interface AcceptedRefund {
  /** May be personal, so it must not be in Temporal. */
  refund: { reason: string | null };
  routing: Omit<RefundInput, 'refund_id' | 'request_id' | 'clock'>;
}

export interface PayoutRequest {
  reference: string | null;
  /** JSON as written. */
  metadata: string;
}

interface AcceptedPayout {
  payout: PayoutRequest;
  routing: Omit<PayoutInput, 'payout_id' | 'request_id' | 'clock'>;
}

/** Encrypted before anything is written. */
export interface AcceptedRecipient {
  recipient: RecipientFacts & { last4: string; ciphertext: string; kid: string };
}

interface AcceptedCryptoPayment {
  crypto_payment: PayoutRequest;
  routing: Omit<CryptoPaymentInput, 'crypto_payment_id' | 'request_id' | 'clock'>;
}

interface AcceptedCryptoSettlement {
  settlement: Omit<CryptoSettlementInput, 'crypto_settlement_id' | 'request_id' | 'clock'>;
}

interface AcceptedWebhookEndpoint {
  webhook_endpoint: {
    url: string;
    description: string | null;
    events: readonly EventType[] | 'all';
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
