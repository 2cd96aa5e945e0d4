import type { Resume, State } from '../lifecycle';
import type { WorkflowInput } from '../workflow-input';
import type { DisputeAnswer, DisputeStatus } from './dispute';

export interface DisputeInput extends WorkflowInput {
  dispute_id: string;
  payment_id: string;
  /** The bank's for the dispute. */
  name: string;
  /** Minor units that its first report names. */
  amount: number;
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
