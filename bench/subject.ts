import type { CallbackMove } from './floor/contract';

export type SubjectName = 'floor' | 'product';

export interface SlowCreates {
  /** Asked for again, with the same key, as the first answer was a 503 or 409. */
  asked_again: number;
  /** Answered `created`, as the bank had not opened its session within 4 s. */
  answered_created: number;
}

/** What is measured: something that takes a payment from its creation to its settlement. */
export interface Subject {
  name: SubjectName;
  /** One HTTP request; the payment's id. @throws Error on any other answer than 201. */
  create(): Promise<string>;
  /** Creates so far that overload made slow. */
  slowCreates(): SlowCreates;
  /** What the bank says, said the way a bank connector says it. */
  callback(paymentId: string, move: CallbackMove): Promise<void>;
  /** Temporal workflows of one payment, by the ids of the events that its receiver got. */
  workflowIds(paymentId: string, eventIds: readonly string[]): string[];
  taskQueues: readonly string[];
  close(): Promise<void>;
}
