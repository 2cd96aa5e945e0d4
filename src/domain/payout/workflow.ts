import type { AccountTime } from '../account/clock';
import type { Refused, Resume, State } from '../lifecycle';
import type { PayoutStatus } from './payout';

/** Never personal: Temporal stores it. */
export interface PayoutInput {
  payout_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units. */
  amount: number;
  /** Minor units, in addition to the amount. */
  fee: number;
  currency: string;
  method: string;
  recipient_id: string;
  balance_account: string;
  connector: string;
  /** The caller of `open` limits its wait, so the workflow needs no timer. */
  caller_waits?: true;
  request_id: string;
  /** Absent: never moved. */
  clock?: AccountTime;
}

export type PayoutResume = Resume<'payout_id'>;

export type PayoutStart = PayoutInput | PayoutResume;

export type PayoutState = State<'payout_id', PayoutStatus>;
export type PayoutResult = PayoutState | Refused<'payout_id'>;
