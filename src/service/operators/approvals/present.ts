import { parseBookCurrency } from '../../../domain/crypto/assets';
import { amountInJson } from '../../../domain/money';
import type { ApprovalDocument } from '../../../store/approvals';

export type ShownApproval = ReturnType<typeof presentApproval>;

/** Writes an asset in its smallest unit, as text. */
export function presentApproval({
  _id: approval_id,
  open,
  resource,
  target,
  amount,
  requester_id,
  plan,
  ...approval
}: ApprovalDocument) {
  const isAsset = parseBookCurrency(approval.currency) !== undefined;
  const present = (units: string) => (isAsset ? units : amountInJson(BigInt(units)));
  const isOfLine = approval.act.startsWith('statement.');
  const ids =
    resource === null && !isOfLine
      ? { resource: null, resource_id: null, operation_id: target }
      : { resource: resource ?? 'statement_line', resource_id: target, operation_id: null };
  const acts = plan?.map(({ is_done: done, ...act }) => ({
    ...act,
    amount: present(act.amount),
    done,
  }));
  return {
    approval_id,
    ...approval,
    ...ids,
    ...(acts && { resource_id: null, plan: acts }),
    amount: present(amount),
    requester_verified: requester_id !== null,
  };
}
