import type { CallbackMove } from './floor/contract';

export type SubjectName = 'floor' | 'product';

/** What is measured: something that takes a payment from its creation to its settlement. */
export interface Subject {
  name: SubjectName;
  /** One HTTP request; the payment's id. @throws Error on any other answer than 201. */
  create(): Promise<string>;
  /** What the bank says, said the way a bank connector says it. */
  callback(paymentId: string, move: CallbackMove): Promise<void>;
  /** Temporal workflows of one payment, by the ids of the events that its receiver got. */
  workflowIds(paymentId: string, eventIds: readonly string[]): string[];
  taskQueues: readonly string[];
  close(): Promise<void>;
}
