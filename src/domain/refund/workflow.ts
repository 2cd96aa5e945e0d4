import type { AccountTime } from '../account/clock';
import type { Refused, Resume, State } from '../lifecycle';
import type { RefundStatus } from './refund';

/** Never personal: Temporal stores it. */
export interface RefundInput {
  refund_id: string;
  payment_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units; null: the rest at the reservation. */
  amount: number | null;
  currency: string;
  method: string;
  connector: string;
  /** ISO 8601; decides whether the refund window is open. */
  accepted_at: string;
  /** Time from acceptance until attention is needed. */
  due_seconds: number;
  request_id: string;
  /** Absent: never moved. */
  clock?: AccountTime;
}

type RefundResume = Resume<'refund_id'>;
export type RefundStart = RefundInput | RefundResume;
export type RefundState = State<'refund_id', RefundStatus>;
export type RefundResult = RefundState | Refused<'refund_id'>;
