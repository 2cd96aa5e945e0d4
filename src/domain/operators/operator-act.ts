import { AMOUNT_MAX } from '../banks/callback';
import { OUTCOMES, type Outcome } from '../banks/movement';
import {
  absent,
  choice,
  Faults,
  flag,
  integer,
  object,
  positive,
  text,
  wholeNumber,
} from '../shape';

/** Stored in the audit trail. */
export interface OperatorAct {
  operator: string;
  reason: string;
  approved_by?: string;
  /** Live only. */
  approval_id?: string;
  by?: ActSender;
  /** The operator of `mark_failed` knows it from the bank, which is not queried. */
  bank_confirmed_not_executed?: boolean;
}

export interface ActSender {
  system_user: string;
  host: string;
}

/** Credit, or write-off, of an act without a second operator. */
export interface CountedAct {
  /** Minor units. */
  amount: number;
  /** ISO 4217. */
  currency: string;
}

export interface ActPayload extends OperatorAct {
  hours?: number;
  /** Minor units; absent: the requested amount. */
  amount?: number;
  /** Operator's id of a chargeback: a repeat posts nothing. */
  operation_id?: string;
  /** Absent: the only dispute. */
  dispute_id?: string;
  /** Movement that the act takes or decides about; absent: the only one, or all. */
  movement?: string;
  /** Says who has what is in suspense, or bears it. */
  as?: Outcome;
  /** Minor units that came back with a dispute. */
  fee?: number;
  /** Seen by the operator: another reason is not acknowledged. */
  attention?: string;
  /** Deposit to confirm, or transaction that sent it back. */
  transaction_id?: string;
  /** Address to which it was sent back. */
  address?: string;
}

const SENDER = { system_user: text({ min: 1, max: 256 }), host: text({ min: 1, max: 256 }) };

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
  approval_id: text({ min: 1, max: 100, optional: true }),
  by: sender,
};

const SNOOZE_HOURS_MAX = 30 * 24;

/** May post another amount than the requested one. */
const WITH_AMOUNT: readonly string[] = [
  'mark_settled',
  'mark_returned',
  'claw_back',
  'resolve_movement',
];

const WITH_MOVEMENT: readonly string[] = [
  ...['mark_settled', 'mark_reversed', 'mark_completed', 'mark_returned'],
  'resolve_movement',
];

const OPERATION_ID = text({ min: 1, max: 200, optional: true });

const ignored = () => undefined;

const WITH_TRANSACTION: readonly string[] = ['resolve_movement', 'confirm'];
const CHAIN_TEXT = { min: 1, max: 200, optional: true };

/**
 * Refuses an amount if the act posts none.
 * @param asksBank whether `mark_failed` queries the bank first
 */
export function readAct(name: string, raw: unknown, asksBank = false): ActPayload | Faults {
  const amount = integer({ min: 1, max: AMOUNT_MAX, optional: true });
  return object<ActPayload>(raw, {
    ...ACT,
    hours: name === 'snooze' ? positive(SNOOZE_HOURS_MAX) : ignored,
    attention: name === 'acknowledge' ? text({ min: 1, max: 100, optional: true }) : ignored,
    amount: WITH_AMOUNT.includes(name) ? amount : absent,
    operation_id: name === 'claw_back' ? OPERATION_ID : absent,
    dispute_id: name === 'dispute_won' ? OPERATION_ID : absent,
    movement: WITH_MOVEMENT.includes(name) ? OPERATION_ID : absent,
    as: name === 'resolve_movement' ? choice(OUTCOMES) : absent,
    fee: name === 'dispute_won' ? wholeNumber(AMOUNT_MAX) : absent,
    transaction_id: WITH_TRANSACTION.includes(name)
      ? text({ ...CHAIN_TEXT, optional: name !== 'confirm' })
      : absent,
    address: name === 'resolve_movement' ? text(CHAIN_TEXT) : absent,
    bank_confirmed_not_executed: asksBank && name === 'mark_failed' ? flag : absent,
  });
}

export const OPERATOR_ROLES = ['operator', 'approver'] as const;

/** An approver also decides on the requests of others. */
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** So long an approver decides on nothing that those ask for who made the key. */
export const NEW_APPROVER_MS = 24 * 3_600_000;

export interface VerifiedOperator {
  operator_id: string;
  name: string;
  role: OperatorRole;
}

/** Keys under one name belong to one operator, however it is spelled. */
export function isSameOperator(a: string, b: string): boolean {
  return normalizeName(a) === normalizeName(b);
}

export function normalizeName(name: string): string {
  return name.normalize('NFKC').trim().toLowerCase();
}

/** Value of `ServiceAttention` while a write is repeated for long. */
export const STEP_STUCK_REASON = 'record_stuck';

/** Signal of an activity to its own workflow. */
export const STEP_STUCK_SIGNAL = 'step_stuck';

/** About five minutes. */
const ATTEMPTS = 16;

/** Reports rarer and rarer: each one is an event of the history. */
export function reportsStuck(attempt: number): boolean {
  return attempt >= ATTEMPTS && Number.isInteger(Math.log2(attempt));
}
