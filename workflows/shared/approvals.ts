import { mayCredit, requireApproval } from '../../src/domain/approval';
import { assertNever } from '../../src/domain/assert';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { omitUndefined } from '../../src/domain/defined';
import type { OperatorItem } from './operator-acts';
import { writeScheduled } from './persist';
import { rejectUpdate } from './refusal';
import type { CommonFacts } from './state';

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
