import type { RefundStatus } from './refund';

/** Input of the `refund` workflow. Never personal, because Temporal stores it. */
export interface RefundInput {
  refund_id: string;
  payment_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units; null for the rest at the time of the reservation. */
  amount: number | null;
  currency: string;
  method: string;
  connector: string;
  /** When the API accepted the request, ISO 8601; it decides whether the refund window is open. */
  accepted_at: string;
  /** From acceptance until a missing answer needs attention. */
  due_seconds: number;
  request_id: string;
}

/** Input that resumes an ended workflow, which first loads its state. */
export interface RefundResume {
  refund_id: string;
  resume: true;
  request_id: string;
}

export type RefundStart = RefundInput | RefundResume;

/** Response of the updates and of the query `state`. */
export interface RefundState {
  refund_id: string;
  status: RefundStatus;
  version: number;
}

/** Result of the workflow; a `refused` refund is not stored, and no money moved. */
export type RefundResult =
  | RefundState
  | { refund_id: string; status: 'refused'; code: string; message: string };
