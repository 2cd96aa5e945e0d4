import {
  ActivityFailure,
  ApplicationFailure,
  type Trigger,
  workflowInfo,
} from '@temporalio/workflow';
import { Faults, uuid } from '../../src/domain/shape';

/** @throws ApplicationFailure with the code as its type */
export function refuse(code: string, message: string): never {
  throw ApplicationFailure.nonRetryable(message, code);
}

/** Fails the waiting update, not the workflow. */
export function rejectUpdate<State>(answer: Trigger<State>, code: string, message: string): void {
  answer.reject(ApplicationFailure.nonRetryable(message, code));
}

export function findRefusal(error: unknown, code: string): string | undefined {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  return cause instanceof ApplicationFailure && cause.type === code ? cause.message : undefined;
}

/** @returns undefined where the activity failed for good, or was given up */
export async function unlessFailed<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ActivityFailure) return undefined;
    throw error;
  }
}

/** @throws ApplicationFailure `invalid_request` */
export function assertWellFormed(read: object): void {
  if (read instanceof Faults) refuse('invalid_request', read.text);
}

/** @throws ApplicationFailure `invalid_request`: the workflow was started by hand */
export function assertIdentity(
  field: string,
  id: unknown,
  getWorkflowId: (id: string) => string,
  isId = uuid,
): void {
  const fault = isId(id);
  if (fault !== undefined) refuse('invalid_request', `${field}: ${fault}`);
  const { workflowId } = workflowInfo();
  if (workflowId !== getWorkflowId(String(id))) {
    refuse('invalid_request', `${field}: must be the id that ${workflowId} names`);
  }
}
