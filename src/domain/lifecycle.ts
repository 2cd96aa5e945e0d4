import type { ErrorCode, ErrorDetail } from './errors';
import { type Faults, object, positive, text } from './shape';

/** Reason why a payment, a refund or a payout came to nothing. @see docs/api.md#states */
export interface Failure {
  code: string;
  message: string;
}

/** Rule of the product that a request breaks; the API answers it as a `Refusal`. */
export interface RuleViolation {
  code: ErrorCode;
  message: string;
  details?: ErrorDetail[];
}

/** Payload of every operator update: who acts, and why. Kept in the audit trail. */
export interface OperatorAct {
  /** 1 to 100 characters. */
  operator: string;
  /** 1 to 500 characters. */
  reason: string;
}

const ACT = {
  operator: text({ min: 1, max: 100, trimmed: true }),
  reason: text({ min: 1, max: 500, trimmed: true }),
};

const SNOOZE_HOURS_MAX = 30 * 24;

/** Payload of the update `snooze`. */
export interface SnoozeAct extends OperatorAct {
  /** Up to 30 days. */
  hours: number;
}

export function readOperatorAct(raw: unknown): OperatorAct | Faults {
  return object<OperatorAct>(raw, ACT);
}

export function readSnoozeAct(raw: unknown): SnoozeAct | Faults {
  return object<SnoozeAct>(raw, { ...ACT, hours: positive(SNOOZE_HOURS_MAX) });
}
