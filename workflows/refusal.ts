import { ApplicationFailure, type Trigger } from '@temporalio/workflow';
import { Faults } from '../src/domain/shape';

/** @throws ApplicationFailure whose type is the code; it fails the update, not the workflow. */
export function refuse(code: string, message: string): never {
  throw ApplicationFailure.nonRetryable(message, code);
}

/** Fails the update that waits, not the workflow. */
export function reject<State>(answer: Trigger<State>, code: string, message: string): void {
  answer.reject(ApplicationFailure.nonRetryable(message, code));
}

/** @throws ApplicationFailure `invalid_request` that names the fields at fault */
export function wellFormed(read: object): void {
  if (read instanceof Faults) refuse('invalid_request', read.text);
}
