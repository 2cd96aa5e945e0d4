import type { Flow } from './measure/load';

/** A webhook that is sent when it is started, without a payment. */
interface Delivery {
  /** ID of the payment that the webhook names. */
  id: string;
  workflowId: string;
  start(): Promise<void>;
}

/** Transition that `prepareDeliveries` reports. */
export const DELIVERED = 'settled';

/** A system that is measured. */
export interface Subject {
  name: 'floor' | 'product';
  payments: Flow;
  prepareDeliveries(count: number): Promise<Delivery[]>;
  taskQueues: readonly string[];
  close(): Promise<void>;
}
