import type { RefundStatus } from './refund';

/** Input of the `refund` workflow: ids, money and routing. Temporal holds nothing personal. */
export interface RefundInput {
  refund_id: string;
  payment_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units; null for all that remains when it is reserved. */
  amount: number | null;
  currency: string;
  method: string;
  connector: string;
  /** Time when the API took the request in, ISO 8601; the refund window is measured against it. */
  accepted_at: string;
  /** Time from acceptance; past it operators are told. */
  due_seconds: number;
  request_id: string;
}

/** Input that starts the workflow again for a refund that has ended; it loads its state first. */
export interface RefundResume {
  refund_id: string;
  resume: true;
  request_id: string;
}

export type RefundStart = RefundInput | RefundResume;

/** Answer of the updates and of the query `state`. */
export interface RefundState {
  refund_id: string;
  status: RefundStatus;
  version: number;
}

/** Result of the workflow; a `refused` refund was never accepted, so nothing is stored or moved. */
export type RefundResult =
  | RefundState
  | { refund_id: string; status: 'refused'; code: string; message: string };
