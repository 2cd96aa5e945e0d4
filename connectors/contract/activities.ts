/**
 * Activities that a bank connector implements on its own task queue `connector-{name}`.
 *
 * Each instruction carries an id made once: a repeat with the same id must give the same answer and
 * move nothing twice. A decline is a value, an outage an exception (it is retried).
 * Inputs carry no personal data, since they stand in Temporal's history.
 */
export interface ConnectorActivities {
  /** Opens the place where the customer pays. Instruction id: `payment_id`. */
  openSession(input: SessionInstruction): Promise<SessionAnswer>;
  /** Closes it before a cancellation or expiry; also where it was never opened. */
  closeSession(input: { payment_id: string }): Promise<CloseAnswer>;
  /** Releases an authorisation that came too late. Instruction id: `void:{payment_id}`. */
  voidPayment(input: { payment_id: string; instruction_id: string }): Promise<VoidAnswer>;
  /** Sends back money that moved too late. Instruction id: `reversal:{payment_id}`. */
  reversePayment(input: ReversalInstruction): Promise<ReversalAnswer>;
  /** Sends a refund to the customer; a callback tells its end. Instruction id: `refund_id`. */
  sendRefund(input: RefundInstruction): Promise<RefundAnswer | Outdated>;
  /**
   * Asks the bank about a refund whose instruction ended without an answer. `not_found` must mean
   * that it never arrived: the instruction is then sent again, under the same id.
   */
  lookUpRefund(input: { refund_id: string }): Promise<RefundLookup>;
  /**
   * Pays a recipient out. Instruction id: `payout_id`. The recipient's details are opened inside
   * this activity, by the kit; they never stand in an input, an answer or an error.
   */
  sendPayout(input: PayoutInstruction): Promise<PayoutAnswer | Outdated>;
  /** Asks the bank about a payout, as `lookUpRefund` does about a refund. */
  lookUpPayout(input: { payout_id: string }): Promise<PayoutLookup>;
}

/**
 * Answer of the instruction guard: the document is final or has another version, and the bank was
 * not instructed. @see connectors/contract/guard.ts
 */
export interface Outdated {
  outcome: 'outdated';
}

export interface SessionInstruction {
  payment_id: string;
  /** Minor units. */
  amount: number;
  currency: string;
  method: string;
  country: string | null;
  livemode: boolean;
  /** URL to which the bank sends the customer when done. */
  return_url: string;
  /** ISO 8601; after this the session must refuse the customer. */
  expires_at: string;
}

export type SessionAnswer =
  | { outcome: 'opened'; bank_reference: string; session_url: string }
  | { outcome: 'declined'; code: string; message: string };

/** `already_authorized`: the customer was faster; the callback follows. */
export type CloseAnswer = { outcome: 'closed' } | { outcome: 'already_authorized' };

/** `already_settled`: the money moved; it has to be reversed instead. */
export type VoidAnswer = { outcome: 'voided' } | { outcome: 'already_settled' };

export interface ReversalInstruction {
  payment_id: string;
  instruction_id: string;
  /** Minor units. */
  amount: number;
  currency: string;
}

export type ReversalAnswer =
  | { outcome: 'accepted'; bank_reference: string }
  | { outcome: 'refused'; code: string; message: string };

export interface RefundInstruction {
  refund_id: string;
  /** Version of the document when the instruction was sent. @see connectors/contract/guard.ts */
  version: number;
  payment_id: string;
  /** The bank's own name for the payment, where it gave one. */
  payment_bank_reference: string | null;
  /** Minor units. */
  amount: number;
  currency: string;
  method: string;
  livemode: boolean;
}

export type RefundAnswer =
  | { outcome: 'accepted'; bank_reference: string }
  | { outcome: 'refused'; code: string; message: string };

export type RefundLookup = RefundAnswer | { outcome: 'not_found' };

export interface PayoutInstruction {
  payout_id: string;
  /** Version of the document when the instruction was sent. @see connectors/contract/guard.ts */
  version: number;
  /** Minor units. */
  amount: number;
  currency: string;
  /** Rail id. */
  method: string;
  livemode: boolean;
}

/** Progress at the bank: queued, or handed to the scheme already. */
export type PayoutAnswer =
  | { outcome: 'submitted' | 'sent'; bank_reference: string }
  | { outcome: 'refused'; code: string; message: string };

export type PayoutLookup = PayoutAnswer | { outcome: 'not_found' };
