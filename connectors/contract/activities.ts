import type { TransferInstructions } from '../../src/domain/payment/transfer-instructions';

/**
 * Activities of a bank connector on its task queue `connector-{name}`. A repeat with the same
 * instruction id gives the same answer and moves money once. A decline is a value; Temporal retries
 * an exception. Inputs stay in Temporal's history, so they have no personal data.
 */
export interface ConnectorActivities {
  /** Opens the page on which the customer pays. Instruction id: `payment_id`. */
  openSession(input: SessionInstruction): Promise<SessionAnswer>;
  /** Closes the session before a cancellation or expiry, even one that was never opened. */
  closeSession(input: { payment_id: string }): Promise<CloseAnswer>;
  /** Releases an authorization that came too late. Instruction id: `void:{payment_id}`. */
  voidPayment(input: { payment_id: string; instruction_id: string }): Promise<VoidAnswer>;
  /**
   * Sends back late funds. Instruction id: `reversal:{payment_id}`, for further funds
   * `reversal:{payment_id}:{id}`.
   */
  reversePayment(input: ReversalInstruction): Promise<ReversalAnswer | Outdated>;
  /** Sends a refund; a callback reports its end. Instruction id: `refund_id`. */
  sendRefund(input: RefundInstruction): Promise<RefundAnswer | Outdated>;
  /**
   * Looks up a refund whose instruction had no answer. `not_found` must mean that it never arrived:
   * it is then sent again with the same id.
   */
  lookUpRefund(input: { refund_id: string }): Promise<RefundLookup>;
  /**
   * Pays a recipient, whose decrypted details never appear in an answer or error. Instruction id:
   * `payout_id`.
   */
  sendPayout(input: PayoutInstruction): Promise<PayoutAnswer | Outdated>;
  lookUpPayout(input: { payout_id: string }): Promise<PayoutLookup>;
  /**
   * Sends a merchant's evidence to the bank that disputes a payment, once and before its deadline.
   * Decrypted, it never appears in an answer or error. Optional. Instruction id:
   * `evidence:{dispute_id}`.
   */
  submitEvidence?(input: DisputeInstruction): Promise<DisputeReply | Outdated>;
  lookUpEvidence?(input: DisputeQuestion): Promise<DisputeLookup>;
  /** Gives in. Optional. Instruction id: `acceptance:{dispute_id}`. */
  acceptDispute?(input: DisputeInstruction): Promise<DisputeReply | Outdated>;
  lookUpAcceptance?(input: DisputeQuestion): Promise<DisputeLookup>;
  /** Cancels a payout before an operator marks it as failed. Optional: register it if supported. */
  cancelPayout?(input: { payout_id: string }): Promise<CancelAnswer>;
}

/** Answer if the document is final or newer. @see connectors/contract/guard.ts */
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
  return_url: string;
  /** ISO 8601; after this the session must refuse the customer. */
  expires_at: string;
}

export type SessionAnswer =
  | {
      outcome: 'opened';
      bank_reference: string;
      /** Page on which the customer pays. */
      session_url: string;
      instructions?: undefined;
    }
  | {
      outcome: 'opened';
      bank_reference: string;
      session_url?: undefined;
      /** Transfer that the customer makes; the hosted page shows it. */
      instructions: TransferInstructions;
    }
  | { outcome: 'declined'; code: string; message: string };

/** `already_authorized`: the customer was faster, and the callback follows. */
export type CloseAnswer = { outcome: 'closed' } | { outcome: 'already_authorized' };

/**
 * `already_settled`: the money is sent back instead, in this amount (minor units) and currency.
 * Without them an operator decides.
 */
export type VoidAnswer =
  | { outcome: 'voided' }
  | { outcome: 'already_settled'; amount?: number; currency?: string };

export interface ReversalInstruction {
  payment_id: string;
  instruction_id: string;
  /** Minor units. */
  amount: number;
  currency: string;
}

export type ReversalAnswer = RefundAnswer;

export interface RefundInstruction {
  refund_id: string;
  /** Document version when the instruction was sent. @see connectors/contract/guard.ts */
  version: number;
  payment_id: string;
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
  version: number;
  /** Minor units. */
  amount: number;
  currency: string;
  /** Rail id. */
  method: string;
  livemode: boolean;
}

export interface DisputeQuestion {
  instruction_id: string;
  dispute_id: string;
  payment_id: string;
  /** The bank's name for the dispute. */
  bank_dispute_id: string;
}

export interface DisputeInstruction extends DisputeQuestion {
  version: number;
  livemode: boolean;
}

export type DisputeReply =
  | { outcome: 'accepted' }
  | { outcome: 'refused'; code: string; message: string };

export type DisputeLookup = DisputeReply | { outcome: 'not_found' };

/** `submitted`: queued at the bank; `sent`: passed on to the scheme. */
export type PayoutAnswer =
  | {
      outcome: 'submitted' | 'sent';
      bank_reference: string;
      /** The connector calls an operator itself where the bank is late. */
      watched?: true;
    }
  | { outcome: 'refused'; code: string; message: string };

/**
 * `cancelled`: nothing was or will be sent, also if the instruction arrives later; `too_late`: the
 * bank holds or has executed it; `unknown`: the look-up decides.
 */
export interface CancelAnswer {
  outcome: 'cancelled' | 'too_late' | 'unknown';
}

export type PayoutLookup = PayoutAnswer | { outcome: 'not_found' };
