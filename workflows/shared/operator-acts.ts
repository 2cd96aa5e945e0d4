import { Trigger, workflowInfo } from '@temporalio/workflow';
import type { ActPayload, ActSender, OperatorAct } from '../../src/domain/lifecycle';

/** The fields that every act has, as the Temporal UI describes them: an object left open. */
export const OPERATOR = '{"operator": "your name", "reason": "how you know"';

/** From which states an act is possible, and why from no other. */
export interface ActRule<Status extends string> {
  from: readonly Status[];
  refusal: (status: Status) => string;
}

/** Why an act can't be done in this state, in words; undefined when it can. */
export function stateFault<Status extends string>(
  { from, refusal }: ActRule<Status>,
  status: Status,
): string | undefined {
  return from.includes(status) ? undefined : refusal(status);
}

/** An operator's update in the inbox; the loop answers it. */
export interface OperatorItem<What extends string, State> {
  kind: 'operator';
  what: What;
  act: OperatorAct;
  /** Length of a snooze. */
  hours: number;
  /** Minor units that really moved; undefined: as it was asked. */
  amount: number | undefined;
  answer: Trigger<State>;
}

/** Resolves with the loop's answer. */
export async function enqueueAct<What extends string, State>(
  inbox: { push(item: OperatorItem<What, State>): unknown },
  what: What,
  { hours = 0, amount, ...act }: ActPayload,
): Promise<State> {
  const answer = new Trigger<State>();
  inbox.push({ kind: 'operator', what, act, hours, amount, answer });
  return await answer;
}

/** Why an amount can't be booked, in words; undefined when it can, also where none is named. */
export function amountFault(
  amount: number | undefined,
  requestedAmount: number,
): string | undefined {
  if (amount === undefined || amount <= requestedAmount) return undefined;
  return `amount: must be at most ${requestedAmount}, as it was asked for (minor units)`;
}

/** An operator's act as the audit trail stores it. */
export interface AuditedAct {
  who: string;
  what: string;
  why: string;
  approved_by?: string;
  by?: ActSender;
}

export function buildAudit({
  what,
  act,
}: Pick<OperatorItem<string, unknown>, 'what' | 'act'>): AuditedAct {
  const { operator: who, reason: why, ...more } = act;
  return { who, what, why, ...more };
}

/** An act that moves nothing, as the audit trail stores it; by its id it is stored once. */
export function datedAudit(audit: AuditedAct) {
  const at = new Date().toISOString();
  return { ...audit, at, id: `${workflowInfo().runId}:${at}` };
}
