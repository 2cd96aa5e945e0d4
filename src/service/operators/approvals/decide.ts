import { inTransaction } from '../../../base/mongo';
import { parseBookCurrency } from '../../../domain/crypto/assets';
import { ServiceError } from '../../../domain/errors';
import { amountInJson } from '../../../domain/money/money';
import { describeAuthority } from '../../../domain/operators/authority';
import {
  isSameOperator,
  NEW_APPROVER_MS,
  type VerifiedOperator,
} from '../../../domain/operators/operator-act';
import type { ApprovalDocument } from '../../../store/approvals';
import type { WriteDeps } from '../../access';

/** Lists the oldest first. */
export async function listApprovals(
  { stores, now }: Pick<WriteDeps, 'stores' | 'now'>,
  all: boolean,
): Promise<ApprovalDocument[]> {
  await stores.approvals.expire(now());
  return await stores.approvals.list(all);
}

/** @throws ServiceError `approval_not_found` */
export async function findApproval(
  { stores, now }: Pick<WriteDeps, 'stores' | 'now'>,
  id: string,
): Promise<ApprovalDocument> {
  await stores.approvals.expire(now());
  const approval = await stores.approvals.get(id);
  if (approval !== null) return approval;
  const message = `There is no approval ${id}: \`approval list --all\` shows those there are.`;
  throw new ServiceError('approval_not_found', message);
}

interface Decision {
  to: 'approved' | 'rejected';
  operator: VerifiedOperator;
  reason: string;
}

/**
 * Decides on another operator's request once. Approving an unverified request confirms it: then
 * another operator approves.
 * @returns the request: `approved` before its act is done
 * @throws ServiceError `approval_not_found`, `same_operator`, `role_not_allowed`,
 * `approver_too_new`, `approval_expired`, `approval_decided`; the refusal of its act, if that is how it ended
 */
export async function decide(
  deps: WriteDeps,
  id: string,
  decision: Decision,
): Promise<ApprovalDocument> {
  const { mongo, stores, audit, now } = deps;
  const { to, operator, reason } = decision;
  const approval = await findApproval(deps, id);
  const { act, account_id, state, requester_id, refusal } = approval;
  const isConfirming = to === 'approved' && state === 'requested' && requester_id === null;
  const { name, role } = operator;
  if (!isConfirming && requester_id !== null && isSameOperator(approval.requested_by, name)) {
    const message = `${name} requested or confirmed it: another operator decides.`;
    throw new ServiceError('same_operator', message);
  }
  if (!isConfirming && role !== 'approver') {
    const message = `${name} is an operator: only an approver decides on requests.`;
    throw new ServiceError('role_not_allowed', message);
  }
  if (!isConfirming) await assertNotTooNew(deps, operator, approval);
  // A repeat of an approval finishes it.
  if (to === 'approved' && (state === 'approved' || state === 'done')) return approval;
  if (to === 'rejected' && state === 'rejected') return approval;
  if (to === 'approved' && refusal !== null) {
    throw new ServiceError(refusal.code, refusal.message);
  }
  if (state === 'expired') {
    const message = `The request ${id} expired at ${approval.expires_at}: repeat the command.`;
    throw new ServiceError('approval_expired', message);
  }
  if (state !== 'requested') {
    const why = refusal === null ? '' : `: ${refusal.message}`;
    const message = `The request ${id} is ${state}, decided by ${approval.decided_by}${why}`;
    throw new ServiceError('approval_decided', message);
  }
  const isWritten = await inTransaction(mongo, async (session) => {
    const by = { state: to, by: name, reason, now: now() };
    const isFirst = isConfirming
      ? await stores.approvals.confirm(id, operator, now(), session)
      : await stores.approvals.decide(id, by, session);
    if (!isFirst) return false;
    const word = isConfirming ? 'confirmed' : to;
    const change = { act: `approval.${word}`, account_id: null, livemode: true } as const;
    await audit({ ...change, target: id, after: { act, account_id } }, session);
    return true;
  });
  // Another operator was faster, or it has just expired.
  if (!isWritten) return await decide(deps, id, decision);
  return await findApproval(deps, id);
}

/** Confirms the operator's own request: its workflow cannot know whose key was verified. */
export async function confirmOwn(
  { mongo, stores, audit, now }: WriteDeps,
  id: string,
  operator: VerifiedOperator,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    if (!(await stores.approvals.confirm(id, operator, now(), session))) return;
    const change = { act: 'approval.confirmed', account_id: null, livemode: true } as const;
    await audit({ ...change, target: id }, session);
  });
}

/**
 * Refuses an approver who is new, where the creator of the key, or another operator whom the
 * creator made, asked within a day of that.
 */
async function assertNotTooNew(
  { stores }: Pick<WriteDeps, 'stores'>,
  { operator_id, name }: VerifiedOperator,
  { requested_by, created_at: requested_at }: ApprovalDocument,
): Promise<void> {
  const operators = await stores.operators.list();
  const { created_by, created_at } = operators.find(({ _id }) => _id === operator_id) ?? {};
  if (created_by === undefined || created_at === undefined) return;
  const from = new Date(Date.parse(created_at) + NEW_APPROVER_MS).toISOString();
  if (requested_at >= from) return;
  const isFromCreator = (other: string) => isSameOperator(other, created_by);
  const isMade = operators.some(
    ({ name: other, created_by: by = '' }) =>
      isSameOperator(other, requested_by) && isFromCreator(by),
  );
  if (!isMade && !isFromCreator(requested_by)) return;
  const message =
    `The key of ${name} is new, and was requested by ${created_by}: it decides on nothing that ` +
    `${requested_by} asks for before ${from}. Another approver decides.`;
  throw new ServiceError('approver_too_new', message);
}

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
  const isAsset = parseBookCurrency(approval.currency ?? '') !== undefined;
  const present = (units: string) => (isAsset ? units : amountInJson(BigInt(units)));
  const request = describeAuthority(approval.act, approval.input);
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
    amount: amount === null ? null : present(amount),
    ...(request !== undefined && { request }),
    requester_verified: requester_id !== null,
  };
}
