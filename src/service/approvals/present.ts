import { parseBookCurrency } from '../../domain/crypto/assets';
import { amountInJson } from '../../domain/money';
import type { ApprovalDocument } from '../../store/approvals';

export type ShownApproval = ReturnType<typeof presentApproval>;

/** Writes an asset in its smallest unit, as text. */
export function presentApproval({
  _id: approval_id,
  open,
  resource,
  target,
  amount,
  requester_id,
  ...approval
}: ApprovalDocument) {
  const isAsset = parseBookCurrency(approval.currency) !== undefined;
  const ids =
    resource === null
      ? { resource: null, resource_id: null, operation_id: target }
      : { resource, resource_id: target, operation_id: null };
  return {
    approval_id,
    ...approval,
    ...ids,
    amount: isAsset ? amount : amountInJson(BigInt(amount)),
    requester_verified: requester_id !== null,
  };
}
