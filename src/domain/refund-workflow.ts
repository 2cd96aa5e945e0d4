import type { RefundStatus } from './refund';

/** Input of the `refund` workflow: ids, money and routing; nothing personal stands in Temporal. */
export interface RefundInput {
  refund_id: string;
  payment_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units; null: whatever remains when it is reserved. */
  amount: number | null;
  currency: string;
  method: string;
  connector: string;
  /** ISO 8601: when the API took the request in. The refund window is measured against it. */
  accepted_at: string;
  /** From acceptance; past it operators are told. */
  due_seconds: number;
  request_id: string;
}

/** Starts the workflow again for a refund that has ended: it loads its state first. */
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

/** What the workflow ends with. `refused`: never accepted, nothing is stored and nothing moved. */
export type RefundResult =
  | RefundState
  | { refund_id: string; status: 'refused'; code: string; message: string };
