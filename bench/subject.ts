import type { Flow } from './measure/load';

export interface Delivery {
  id: string;
  workflowId: string;
  start(): Promise<void>;
}

/** Transition that `prepareDeliveries` reports. */
export const DELIVERED = 'settled';

export interface Subject {
  name: 'floor' | 'product';
  payments: Flow;
  prepareDeliveries(count: number): Promise<Delivery[]>;
  taskQueues: readonly string[];
  close(): Promise<void>;
}
