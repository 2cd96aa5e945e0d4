import type { Refused, Resume, State } from '../lifecycle';
import type { WorkflowInput } from '../workflow-input';
import type { RefundStatus } from './refund';

export interface RefundInput extends WorkflowInput {
  refund_id: string;
  payment_id: string;
  /** Minor units; null: the rest at the reservation. */
  amount: number | null;
  /** ISO 8601; decides whether the refund window is open. */
  accepted_at: string;
  /** Time from acceptance until attention is needed. */
  due_seconds: number;
}

type RefundResume = Resume<'refund_id'>;
export type RefundStart = RefundInput | RefundResume;
export type RefundState = State<'refund_id', RefundStatus>;
export type RefundResult = RefundState | Refused<'refund_id'>;
