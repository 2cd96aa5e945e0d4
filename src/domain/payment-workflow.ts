import type { Failure } from './lifecycle';
import type { CancelledBy, PaymentStatus } from './payment';

/** Input of the `payment` workflow: ids, money and routing. Temporal holds nothing personal. */
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
  /** Address to which the bank sends the customer back. */
  return_url: string;
  expires_in_seconds: number;
  /** Time after authorisation; past it operators are told. */
  settlement_due_seconds: number;
  /** The money usually follows the authorisation within minutes. */
  settles_soon?: true;
  request_id: string;
}

/** Input that starts the workflow again for a payment that has ended; it loads its state first. */
export interface PaymentResume {
  payment_id: string;
  resume: true;
  request_id: string;
}

export type PaymentStart = PaymentInput | PaymentResume;

/** Answer of the updates and of the query `state`. */
export interface PaymentState {
  payment_id: string;
  status: PaymentStatus;
  version: number;
}

/** The state in which a payment was first written, as its creating request is answered. */
export interface PaymentOpening {
  status: PaymentStatus;
  failure: Failure | null;
  /** ISO 8601, ms. */
  created_at: string;
}

/** Answer of the update `open`. */
export interface PaymentOpened extends PaymentState {
  /** Facts of the first answer; absent where they are not kept, and in a later run. */
  opening?: PaymentOpening;
}

/** Payload of the update `cancel`. */
export interface CancelInput {
  by: CancelledBy;
}
