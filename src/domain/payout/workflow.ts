import type { Refused, Resume, State } from '../lifecycle';
import type { WorkflowInput } from '../workflow-input';
import type { PayoutStatus } from './payout';

export interface PayoutInput extends WorkflowInput {
  payout_id: string;
  /** Minor units. */
  amount: number;
  /** Minor units, in addition to the amount. */
  fee: number;
  recipient_id: string;
  balance_account: string;
  /** The caller of `open` limits its wait, so the workflow needs no timer. */
  caller_waits?: true;
}

export type PayoutResume = Resume<'payout_id'>;

export type PayoutStart = PayoutInput | PayoutResume;

export type PayoutState = State<'payout_id', PayoutStatus>;
export type PayoutResult = PayoutState | Refused<'payout_id'>;
