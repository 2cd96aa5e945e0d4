import type { AccountTime } from '../account/clock';
import type { Resume, State } from '../lifecycle';
import type { DisputeAnswer, DisputeStatus } from './dispute';

/** Never personal: Temporal stores it. */
export interface DisputeInput {
  dispute_id: string;
  payment_id: string;
  /** The bank's for the dispute. */
  name: string;
  account_id: string;
  livemode: boolean;
  /** Minor units that its first report names. */
  amount: number;
  currency: string;
  method: string;
  connector: string;
  request_id: string;
  /** Absent: never moved. */
  clock?: AccountTime;
}

export type DisputeResume = Resume<'dispute_id'>;
export type DisputeStart = DisputeInput | DisputeResume;
export type DisputeState = State<'dispute_id', DisputeStatus>;

/** Request of the merchant, whose evidence is stored before. */
export interface RespondInput {
  with: DisputeAnswer;
}

export interface DisputeResponse extends DisputeState {
  /** Absent while the bank has not confirmed it. */
  outcome?: 'accepted' | 'refused';
  message?: string;
}
