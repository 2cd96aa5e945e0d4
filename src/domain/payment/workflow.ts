import type { Failure } from '../lifecycle';
import type { CancelledBy, PaymentStatus } from './payment';

/** Input of the `payment` workflow. Never personal, because Temporal stores it. */
export interface PaymentInput {
  payment_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units. */
  amount: number;
  currency: string;
  method: string;
  country: string | null;
  connector: string;
  /** URL to which the bank returns the customer. */
  return_url: string;
  expires_in_seconds: number;
  /** From authorization until a missing settlement needs attention. */
  settlement_due_seconds: number;
  /** Settlement usually takes minutes after authorization. */
  settles_soon?: true;
  request_id: string;
}

/** Input that resumes an ended workflow, which first loads its state. */
export interface PaymentResume {
  payment_id: string;
  resume: true;
  request_id: string;
}

export type PaymentStart = PaymentInput | PaymentResume;

/** Response of the updates and of the query `state`. */
export interface PaymentState {
  payment_id: string;
  status: PaymentStatus;
  version: number;
}

/** State in which the payment was first written, for the response to its creating request. */
export interface PaymentOpening {
  status: PaymentStatus;
  failure: Failure | null;
  /** ISO 8601, ms. */
  created_at: string;
}

/** Response of the update `open`. */
export interface PaymentOpened extends PaymentState {
  /** Absent if it is not stored, and in a later run. */
  opening?: PaymentOpening;
}

/** Payload of the update `cancel`. */
export interface CancelInput {
  by: CancelledBy;
}
