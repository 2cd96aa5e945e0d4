import { Trigger, workflowInfo } from '@temporalio/workflow';
import type { Act } from '../../activities/shared/record-table';
import { assertNever } from '../../src/domain/assert';
import type { CallbackResource } from '../../src/domain/banks/callback';
import type { Outcome } from '../../src/domain/banks/movement';
import type { ActTarget } from '../../src/domain/crypto/deposit-acts';
import { omitUndefined } from '../../src/domain/defined';
import {
  type ApprovalRequired,
  mayCredit,
  requireApproval,
} from '../../src/domain/operators/approval';
import type { ActPayload, CountedAct, OperatorAct } from '../../src/domain/operators/operator-act';
import { writeScheduled } from './persist';
import { rejectUpdate } from './refusal';
import type { CommonFacts } from './state';

/** Fields of every act in the Temporal UI: an object that is not closed. */
export const OPERATOR = '{"operator": "your name", "reason": "how you know"';

export interface ActRule<Status extends string> {
  from: readonly Status[];
  refusal: (status: Status) => string;
}

/** Reasons are acknowledged in every state. */
export type ActRules<Act extends string, Status extends string> = Record<
  Exclude<Act, 'acknowledge'>,
  ActRule<Status>
>;

export const ACKNOWLEDGE =
  'Takes the attention reason off the lists and the metrics until it comes again: ' +
  `${OPERATOR}}.`;

export const SNOOZE = `Clears the attention reason for some hours: ${OPERATOR}, "hours": 24}.`;

export const RESOLVE_MOVEMENT =
  `Decides about money in suspense: ${OPERATOR}, "as": "merchant"}, or "customer", "bank", ` +
  '"loss", "never_happened". Of several, the "movement"; an "amount" in minor units decides about ' +
  'a part.';

export function stateFault<Act extends string, Status extends string>(
  rules: ActRules<Act, Status>,
  status: Status,
  act: Act,
): string | undefined {
  const states: Partial<Record<string, ActRule<Status>>> = rules;
  const rule = states[act];
  return rule === undefined || rule.from.includes(status) ? undefined : rule.refusal(status);
}

export interface OperatorItem<What extends string, State> {
  kind: 'operator';
  what: What;
  act: OperatorAct;
  hours: number;
  /** Minor units; undefined: the requested amount. */
  amount: number | undefined;
  /** Operator's own id. */
  operation_id: string | undefined;
  dispute_id: string | undefined;
  fee: number | undefined;
  /** Undefined: the only one, or all. */
  movement: string | undefined;
  as: Outcome | undefined;
  /** Undefined: the present one. */
  attention: string | undefined;
  target?: ActTarget;
  /** Whether an earlier try has interrupted an instruction. */
  isInterrupting?: boolean;
  /** Answer of the bank about it, once it was asked. */
  finding?: object;
  /** Counts with the act. */
  credited?: CountedAct;
  /** Another act has reached a limit since this one was allowed. */
  isAboveLimit?: boolean;
  answer: Trigger<State | ApprovalRequired>;
}

export async function enqueueAct<What extends string, State>(
  inbox: { push(item: OperatorItem<What, State>): unknown },
  what: What,
  { hours = 0, amount, operation_id, dispute_id, fee, attention, ...rest }: ActPayload,
): Promise<State | ApprovalRequired> {
  const answer = new Trigger<State | ApprovalRequired>();
  const { transaction_id, address, movement, as, ...act } = rest;
  const target = { transaction_id, address };
  const named = { operation_id, dispute_id, movement, as };
  const details = { hours, amount, ...named, fee, attention, target };
  inbox.push({ kind: 'operator', what, act, ...details, answer });
  return await answer;
}

export function amountFault(
  amount: number | undefined,
  requestedAmount = Number.POSITIVE_INFINITY,
): string | undefined {
  if (amount === undefined || amount <= requestedAmount) return undefined;
  return `amount: must be at most the requested ${requestedAmount} (minor units)`;
}

export type AuditedAct = Act;

export function buildAudit({
  what,
  act,
  credited,
}: Pick<OperatorItem<string, unknown>, 'what' | 'act' | 'credited'>): AuditedAct {
  const { operator: who, reason: why, ...more } = act;
  // An update may have fields of its own.
  return { who, what, why, ...more, credited };
}

/** Adds an id, by which an act is stored once. */
export function datedAudit(audit: AuditedAct) {
  const at = new Date().toISOString();
  return { ...audit, at, id: `${workflowInfo().runId}:${at}` };
}

interface ActivityLog<Resource> {
  logActivity(resource: Resource, line: string): void;
}

/**
 * @returns whether the act may be done; otherwise the operator has an answer
 * @see docs/operators.md#approvals
 */
export async function authorize<Resource extends { id: string; facts: CommonFacts }, State>(
  kind: CallbackResource,
  record: ActivityLog<Resource>,
  resource: Resource,
  item: OperatorItem<string, State>,
): Promise<boolean> {
  if (!resource.facts.livemode || !mayCredit(kind, item.what)) return true;
  const { what, act, amount, fee, dispute_id, movement, as, target, answer } = item;
  const { operator, reason, bank_confirmed_not_executed, approval_id } = act;
  const named = omitUndefined({ amount, fee, dispute_id, movement, as, ...target });
  const proof = omitUndefined({ bank_confirmed_not_executed, approval_id });
  const about = { resource: kind, resource_id: resource.id, what, operator, reason };
  const request = { ...about, named, ...proof };
  const decision = await writeScheduled((activities) => activities.authorizeAct(request));
  switch (decision.outcome) {
    case 'allowed': {
      const { outcome, credited, ...names } = decision;
      const { approved_by, ...typed } = act;
      item.credited = credited;
      // A typed name of a second operator proves nothing.
      item.act = { ...typed, ...names };
      return true;
    }
    case 'approval_required':
      record.logActivity(resource, `${what} by ${operator} needs ${decision.approval_id} approved`);
      answer.resolve(requireApproval(decision.approval_id));
      return false;
    case 'refused':
      rejectUpdate(answer, decision.code, decision.message);
      return false;
    default:
      return assertNever(decision);
  }
}
