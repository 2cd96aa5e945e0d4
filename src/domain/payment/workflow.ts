import type { Failure } from '../failure';
import type { Resume, State } from '../lifecycle';
import type { WorkflowInput } from '../workflow-input';
import type { CancelledBy, PaymentStatus } from './payment';

export interface PaymentInput extends WorkflowInput {
  payment_id: string;
  /** Minor units. */
  amount: number;
  country: string | null;
  /** The bank returns the customer to it. */
  return_url: string;
  expires_in_seconds: number;
  /** Time from authorization until attention is needed. */
  settlement_due_seconds: number;
  /** Minutes after authorization. */
  settles_soon?: true;
}

export type PaymentResume = Resume<'payment_id'>;

export type PaymentStart = PaymentInput | PaymentResume;

export type PaymentState = State<'payment_id', PaymentStatus>;

/** First written state, for the response to the creating request. */
export interface PaymentOpening {
  status: PaymentStatus;
  failure: Failure | null;
  /** ISO 8601, ms. */
  created_at: string;
}

export interface PaymentOpened extends PaymentState {
  /** Absent if it is not stored, and in a later run. */
  opening?: PaymentOpening;
}

export interface CancelInput {
  by: CancelledBy;
}
