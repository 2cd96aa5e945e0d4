import { AMOUNT_MAX } from './callback/callback';
import type { ErrorCode, ErrorDetail } from './errors';
import { absent, Faults, integer, object, positive, text } from './shape';

/** Why a payment, refund or payout failed. @see docs/api.md#states */
export interface Failure {
  code: string;
  message: string;
}

/** A rule that a request violates; the API responds with a `Refusal`. */
export interface RuleViolation {
  code: ErrorCode;
  message: string;
  details?: ErrorDetail[];
}

/** Payload of every operator update, stored in the audit trail. */
export interface OperatorAct {
  /** 1 to 100 characters. */
  operator: string;
  /** 1 to 500 characters. */
  reason: string;
  /** Second operator, 1 to 100 characters. */
  approved_by?: string;
  by?: ActSender;
}

/** System user and host that ran the command line. */
export interface ActSender {
  system_user: string;
  host: string;
}

/** Payload of any act, with the fields of all. */
export interface ActPayload extends OperatorAct {
  /** Length of a snooze. */
  hours?: number;
  /** Minor units that actually moved; absent if they equal the requested amount. */
  amount?: number;
}

const SENDER = { system_user: text({ min: 1, max: 256 }), host: text({ min: 1, max: 256 }) };

/** Accepts a system user with a host, or undefined. */
function sender(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const result = object<ActSender>(value, SENDER);
  if (result instanceof Faults) return result.text;
  return Object.keys(Object(value)).length > 2 ? 'must have system_user and host only' : undefined;
}

const ACT = {
  operator: text({ min: 1, max: 100, trimmed: true }),
  reason: text({ min: 1, max: 500, trimmed: true }),
  approved_by: text({ min: 1, max: 100, optional: true, trimmed: true }),
  by: sender,
};

const SNOOZE_HOURS_MAX = 30 * 24;

/** Acts that may post an amount other than the requested one. */
const WITH_AMOUNT: readonly string[] = ['mark_settled', 'mark_returned', 'claw_back'];

const ignored = () => undefined;

/** Parses the payload of an update; refuses an amount if the act posts none. */
export function readAct(name: string, raw: unknown): ActPayload | Faults {
  const amount = integer({ min: 1, max: AMOUNT_MAX, optional: true });
  return object<ActPayload>(raw, {
    ...ACT,
    hours: name === 'snooze' ? positive(SNOOZE_HOURS_MAX) : ignored,
    amount: WITH_AMOUNT.includes(name) ? amount : absent,
  });
}
