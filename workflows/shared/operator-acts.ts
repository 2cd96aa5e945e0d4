import type { UpdateDefinition } from '@temporalio/common';
import { setHandler, Trigger, workflowInfo } from '@temporalio/workflow';
import type { OperatorAct, SnoozeAct } from '../../src/domain/payment-workflow';
import type { Faults } from '../../src/domain/shape';
import { refuse, wellFormed } from './refusal';

/** What an operator's update leaves in the inbox; the loop answers it. */
export interface OperatorItem<What extends string, State> {
  kind: 'operator';
  what: What;
  act: OperatorAct;
  hours?: number;
  answer: Trigger<State>;
}

/** Any act as it is sent; only a snooze has hours. */
export type SentAct = OperatorAct & Partial<SnoozeAct>;

/** The fields that every act has, as the Temporal UI describes them: an object left open. */
export const OPERATOR = '{"operator": "your name", "reason": "how you know"';

interface Listening<Act extends OperatorAct, State> {
  description: string;
  read: (raw: unknown) => Act | Faults;
  /** Why it can't be done now, in words; undefined when it can. */
  wrongState: () => string | undefined;
  enqueue: (act: Act) => Promise<State>;
}

/** Refuses in words what is malformed or out of place; the rest is the loop's. */
export function listenToAct<Act extends OperatorAct, State>(
  update: UpdateDefinition<State, [Act]>,
  { description, read, wrongState, enqueue }: Listening<Act, State>,
): void {
  setHandler<State, [Act], UpdateDefinition<State, [Act]>>(update, enqueue, {
    description,
    validator: (act: Act) => {
      wellFormed(read(act));
      const fault = wrongState();
      if (fault !== undefined) refuse('wrong_state', fault);
    },
  });
}

/** Resolves with the loop's answer. */
export async function enqueueAct<What extends string, State>(
  inbox: { push(item: OperatorItem<What, State>): unknown },
  what: What,
  { operator, reason, hours }: SentAct,
): Promise<State> {
  const answer = new Trigger<State>();
  inbox.push({
    kind: 'operator',
    what,
    act: { operator, reason },
    ...(hours === undefined ? {} : { hours }),
    answer,
  });
  return await answer;
}

/** An operator's act as the audit trail keeps it. */
export function auditOf({ what, act }: Pick<OperatorItem<string, unknown>, 'what' | 'act'>) {
  return { who: act.operator, what, why: act.reason };
}

/** The same of an act that moves nothing; its id lets a repeated write add nothing. */
export function datedAudit(audit: ReturnType<typeof auditOf>) {
  const at = new Date().toISOString();
  return { ...audit, at, id: `${workflowInfo().runId}:${at}` };
}
