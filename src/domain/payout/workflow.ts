import type { PayoutStatus } from './payout';

/** Input of the `payout` workflow. Never personal, because Temporal stores it. */
export interface PayoutInput {
  payout_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units. */
  amount: number;
  /** Minor units, on top of the amount. */
  fee: number;
  currency: string;
  /** Rail id. */
  method: string;
  recipient_id: string;
  /** Balance account that pays amount and fee. */
  balance_account: string;
  connector: string;
  /** The caller of `open` limits its wait, so the workflow needs no timer. */
  caller_waits?: true;
  request_id: string;
}

/** Input that resumes an ended workflow, which first loads its state. */
export interface PayoutResume {
  payout_id: string;
  resume: true;
  request_id: string;
}

export type PayoutStart = PayoutInput | PayoutResume;

/** Response of the updates and of the query `state`. */
export interface PayoutState {
  payout_id: string;
  status: PayoutStatus;
  version: number;
}

/** Result of the workflow; a `refused` payout is not stored, and no money moved. */
export type PayoutResult =
  | PayoutState
  | { payout_id: string; status: 'refused'; code: string; message: string };

/** A payout is accepted within this time or refused. @see docs/decisions.md#payouts */
export const ACCEPT_WITHIN_MS = 5_000;
