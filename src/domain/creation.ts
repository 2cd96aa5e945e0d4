import type { CryptoPaymentInput, CryptoSettlementInput } from './crypto-workflow';
import type { PaymentInput } from './payment-workflow';
import type { PayoutInput } from './payout-workflow';
import type { RecipientFacts } from './recipient';
import type { RefundInput } from './refund-workflow';

/** Payer as the merchant names them. */
export interface Customer {
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  /** The merchant's own. */
  reference: string | null;
}

/** Payer as stored: names and e-mail address sealed together; null without any, or once blanked. */
export interface SealedCustomer {
  reference: string | null;
  sealed: string | null;
}

/** Payer in a record, which may be older than the sealing. */
export type KeptCustomer = Customer | SealedCustomer;

/** Key that derives the link of a page, chosen when the request is accepted. */
interface LinkKey {
  /** Absent for the first key. */
  token_kid?: string;
}

/** Parts of a request that Temporal must not hold; the claim keeps them until they are written. */
export interface PaymentRequest extends LinkKey {
  reference: string | null;
  customer: KeptCustomer;
  /** JSON text, as written. */
  metadata: string;
  success_url: string;
  error_url: string;
}

/** An accepted request: what is stored, and the routing that was decided when it was accepted. */
export interface ClaimedPayment {
  stored: PaymentRequest;
  routing: Omit<PaymentInput, 'payment_id' | 'return_url' | 'request_id'>;
}

/** Fields of a refund that may be about a person, so that Temporal does not hold them. */
export interface RefundRequest {
  reason: string | null;
}

export interface ClaimedRefund {
  refund: RefundRequest;
  routing: Omit<RefundInput, 'refund_id' | 'request_id'>;
}

/** Fields of a payout beside money and routing, as the merchant sent them. */
export interface PayoutRequest {
  reference: string | null;
  /** JSON text, as written. */
  metadata: string;
}

export interface ClaimedPayout {
  payout: PayoutRequest;
  routing: Omit<PayoutInput, 'payout_id' | 'request_id'>;
}

/** A recipient as it will be stored: its details are sealed before anything is kept. */
export interface ClaimedRecipient {
  recipient: RecipientFacts & { last4: string; sealed: string; kid: string };
}

/** Fields of a crypto payment beside money and routing, as the merchant sent them. */
export interface CryptoPaymentRequest extends LinkKey {
  reference: string | null;
  /** JSON text, as written. */
  metadata: string;
}

export interface ClaimedCryptoPayment {
  crypto_payment: CryptoPaymentRequest;
  routing: Omit<CryptoPaymentInput, 'crypto_payment_id' | 'request_id'>;
}

export interface ClaimedCryptoSettlement {
  settlement: Omit<CryptoSettlementInput, 'crypto_settlement_id' | 'request_id'>;
}

/** Requests that a claim may hold; each creating operation adds its own. */
export type ClaimedRequest =
  | ClaimedPayment
  | ClaimedRefund
  | ClaimedPayout
  | ClaimedRecipient
  | ClaimedCryptoPayment
  | ClaimedCryptoSettlement;
