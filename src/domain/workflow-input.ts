import type { AccountTime } from './merchants/clock';

/** Fields of the input of each workflow of a resource. Never personal: Temporal stores it. */
export interface WorkflowInput {
  account_id: string;
  livemode: boolean;
  /** ISO 4217, also of the book of an asset. */
  currency: string;
  method: string;
  connector: string;
  request_id: string;
  /** Absent: never moved. */
  clock?: AccountTime;
}
