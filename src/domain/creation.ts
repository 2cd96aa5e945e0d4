import type { PaymentInput } from './payment-workflow';
import type { PayoutInput } from './payout-workflow';
import type { RecipientFacts } from './recipient';
import type { RefundInput } from './refund-workflow';

/** What the merchant sent and Temporal must not hold: kept in the claim until it is written. */
export interface PaymentRequest {
  reference: string | null;
  customer: {
    email: string | null;
    first_name: string | null;
    last_name: string | null;
    reference: string | null;
  };
  /** JSON text, as written. */
  metadata: string;
  success_url: string;
  error_url: string;
}

/** An accepted request: what is stored, and the routing that was decided when it was accepted. */
export interface PaymentCreation {
  stored: PaymentRequest;
  routing: Omit<PaymentInput, 'payment_id' | 'return_url' | 'request_id'>;
}

/** What the merchant says of a refund: it may be about a person, so Temporal does not hold it. */
export interface RefundRequest {
  reason: string | null;
}

export interface RefundCreation {
  refund: RefundRequest;
  routing: Omit<RefundInput, 'refund_id' | 'request_id'>;
}

/** What the merchant says of a payout beside money and routing. */
export interface PayoutRequest {
  reference: string | null;
  /** JSON text, as written. */
  metadata: string;
}

export interface PayoutCreation {
  payout: PayoutRequest;
  routing: Omit<PayoutInput, 'payout_id' | 'request_id'>;
}

/** A recipient as it will be stored: its details are sealed before anything is kept. */
export interface RecipientCreation {
  recipient: RecipientFacts & { last4: string; sealed: string; kid: string };
}

/** What a claim may hold; each creating operation adds its own. */
export type CreationRequest = PaymentCreation | RefundCreation | PayoutCreation | RecipientCreation;
