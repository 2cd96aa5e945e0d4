import { AMOUNT_MAX } from './callback';
import type { ErrorCode, ErrorDetail } from './errors';
import { absent, Faults, integer, object, positive, text } from './shape';

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
  /** Second operator, 1 to 100 characters. */
  approved_by?: string;
  /** System user and host of the command line that sent it. */
  by?: SentBy;
}

/** Sender of an act, as the command line finds it. */
export interface SentBy {
  system_user: string;
  host: string;
}

/** Any act as it is sent. */
export interface SentAct extends OperatorAct {
  /** Length of a snooze. */
  hours?: number;
  /** Minor units that really moved; absent: as it was asked. */
  amount?: number;
}

const SENDER = { system_user: text({ min: 1, max: 256 }), host: text({ min: 1, max: 256 }) };

/** Accepts a system user with a host, or none. */
function sender(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const read = object<SentBy>(value, SENDER);
  if (read instanceof Faults) return read.text;
  return Object.keys(Object(value)).length > 2 ? 'must have system_user and host only' : undefined;
}

const ACT = {
  operator: text({ min: 1, max: 100, trimmed: true }),
  reason: text({ min: 1, max: 500, trimmed: true }),
  approved_by: text({ min: 1, max: 100, optional: true, trimmed: true }),
  by: sender,
};

const SNOOZE_HOURS_MAX = 30 * 24;

/** Acts that book what really moved, where that is not what was asked. */
const WITH_AMOUNT: readonly string[] = ['mark_settled', 'mark_returned', 'claw_back'];

const ignored = () => undefined;

/** Reads the payload of an update; an amount where none is booked is refused, not dropped. */
export function readAct(name: string, raw: unknown): SentAct | Faults {
  const amount = integer({ min: 1, max: AMOUNT_MAX, optional: true });
  return object<SentAct>(raw, {
    ...ACT,
    hours: name === 'snooze' ? positive(SNOOZE_HOURS_MAX) : ignored,
    amount: WITH_AMOUNT.includes(name) ? amount : absent,
  });
}
