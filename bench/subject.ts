import type { CallbackMove } from './floor/contract';

export type SubjectName = 'floor' | 'product';

export interface SlowCreates {
  /** Creates that were asked for again, with the same key, as the first answer was a 503 or 409. */
  asked_again: number;
  /** Creates answered `created`, as the bank had not opened its session within 4 s. */
  answered_created: number;
}

/** Webhook that is told when it is started. */
export interface Delivery {
  /** Id of the payment that the webhook names. */
  paymentId: string;
  workflowId: string;
  start(): Promise<void>;
}

/** Move of which `deliveries` tell. */
export const TOLD_ALONE = 'settled';

/** The system that is measured, which takes a payment from its creation to its settlement. */
export interface Subject {
  name: SubjectName;
  /**
   * Makes one HTTP request and returns the payment's id.
   * @throws Error on any other answer than 201.
   */
  create(): Promise<string>;
  /** Prepares so many deliveries that have no payment: they cost what is theirs alone. */
  deliveries(count: number): Promise<Delivery[]>;
  /** Counts the creates so far that overload made slow. */
  slowCreates(): SlowCreates;
  /** Sends a report of the bank in the way of a bank connector. */
  callback(paymentId: string, move: CallbackMove): Promise<void>;
  /**
   * Lists the Temporal workflows of one payment, by the ids of the events that its receiver got.
   */
  workflowIds(paymentId: string, eventIds: readonly string[]): string[];
  taskQueues: readonly string[];
  close(): Promise<void>;
}
