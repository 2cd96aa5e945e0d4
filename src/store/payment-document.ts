import type { EncryptedCustomer } from '../domain/creation';
import type { Dispute } from '../domain/payment/dispute';
import type { PaymentAttention, PaymentStatus } from '../domain/payment/payment';
import type { TransferInstructions } from '../domain/payment/transfer-instructions';
import type { ResourceDocument } from './resource';

/** @see docs/api.md#create-a-payment */
export interface PaymentDocument extends ResourceDocument<PaymentStatus, PaymentAttention> {
  /** Minor units. */
  amount: number;
  country: string | null;
  reference: string | null;
  customer: EncryptedCustomer;
  metadata: string;
  /** Minor units of its processing and settled refunds. */
  refunded: number;
  /** Minor units beyond the amount, from failed refunds that the bank sent. */
  refunded_over?: number;
  authorized_at: string | null;
  settled_at: string | null;
  cancelled_at: string | null;
  /** Minor units, where an operator booked a different amount. */
  settled_amount?: number | null;
  /** No refunds since then: the bank reported a chargeback, or it took all. */
  disputed_at?: string | null;
  /** Decision of an operator: an earlier report disputes it no more. */
  dispute_ended_at?: string;
  /** Oldest first. */
  disputes?: Dispute[];
  return_url?: string;
  success_url: string;
  error_url: string;
  expires_at: string;
  session_url: string | null;
  /** Replaces a session. */
  instructions?: TransferInstructions;
  /** SHA-256 of the page's token, which is derived and never stored. */
  token_hash: string;
  browser_hash: string | null;
  opened_at: string | null;
}
