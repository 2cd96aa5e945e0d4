import type { PayoutStatus } from './payout';

/** Input of the `payout` workflow: ids, money and routing. Temporal holds nothing personal. */
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
  /** Named balance from which amount and fee are drawn. */
  balance_account: string;
  connector: string;
  /** Whether a payout on this rail can come back. */
  can_be_returned: boolean;
  /** The caller of `open` waits for as long as it can, so that no timer has to. */
  caller_waits?: true;
  request_id: string;
}

/** Input that starts the workflow again for a payout that has ended; it loads its state first. */
export interface PayoutResume {
  payout_id: string;
  resume: true;
  request_id: string;
}

export type PayoutStart = PayoutInput | PayoutResume;

/** Answer of the updates and of the query `state`. */
export interface PayoutState {
  payout_id: string;
  status: PayoutStatus;
  version: number;
}

/** Result of the workflow; a `refused` payout was never accepted, so nothing is stored or moves. */
export type PayoutResult =
  | PayoutState
  | { payout_id: string; status: 'refused'; code: string; message: string };

/** A payout is accepted within this time or never. @see docs/decisions.md#payouts */
export const ACCEPT_WITHIN_MS = 5_000;
