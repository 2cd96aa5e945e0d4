import type { VerifiedOperator } from '../../../domain/account/operator';
import { isApprovalRequired } from '../../../domain/approval';
import { findApprovedAct } from '../../../domain/authority';
import { ServiceError } from '../../../domain/errors';
import type { ActSender } from '../../../domain/operator-act';
import type { UnclearedEntry } from '../../../ledger/uncleared';
import { isInFlight } from '../../../lifecycles';
import type { Routes } from '../../../routing';
import type { ApprovalDocument } from '../../../store/approvals';
import type { LineDocument } from '../../../store/statement-lines';
import { RESEND_ACT, resendFile } from '../../banks/sepa/files';
import { CLEAR_ACT, clearApproved } from '../../banks/statements/clear';
import { ManualMatch, matchByHand } from '../../banks/statements/lines';
import type { WriteDeps } from '../../deps';
import { type Posted, postBalanceAct, readBalanceCall } from '../../money/balances/act';
import { type Act, type ActDeps, type ActResult, actOn } from '../act';
import { actOnMany, type Outcome, planActs } from '../act-many';
import { carryOutAuthority } from './authority';
import { decide, findApproval } from './decide';

interface ApproveDeps extends WriteDeps, Routes {
  /** Service database. */
  database: string;
  openActDeps: () => Promise<ActDeps>;
  by?: ActSender;
  /** Called after each act of a plan. */
  onOutcome?: (outcome: Outcome) => void;
}

/** Another try would not change them. */
const FINAL: readonly string[] = [
  'account_not_found',
  'amounts_differ',
  'approval_decided',
  'approval_differs',
  'approval_expired',
  'bank_reference_used',
  'connector_not_stopped',
  'entry_not_open',
  'entry_not_found',
  'held_by_bank',
  'insufficient_balance',
  'invalid_request',
  'line_not_found',
  'line_not_open',
  'not_in_suspense',
  'not_reversible',
  'nothing_owed',
  'operation_id_used',
  'operation_not_found',
  'sepa_file_not_refused',
  'wrong_state',
];

interface Approved {
  approval: ApprovalDocument;
  result?:
    | Posted
    | ActResult
    | LineDocument
    | UnclearedEntry[]
    | readonly Outcome[]
    | { payouts: number };
}

/**
 * Approves a request and carries its act out once. Repeat it after an unknown outcome: the act ends
 * the approval in its own transaction. An act that prints a secret is left to its requester.
 * @returns without a result where it was done before, was only confirmed, or is the requester's
 * @throws ServiceError those of `decide`; `approval_expired`; those of the act, which the approval
 * stores if they are final
 */
export async function approve(
  deps: ApproveDeps,
  id: string,
  { operator, reason }: { operator: VerifiedOperator; reason: string },
): Promise<Approved> {
  const approval = await decide(deps, id, { to: 'approved', operator, reason });
  if (approval.state !== 'approved') return { approval };
  const authority = findApprovedAct(approval.act);
  if (authority?.isRepeated) return { approval };
  if (approval.expires_at <= deps.now().toISOString()) {
    const message = `The request ${id} was approved, and not carried out in time: repeat it.`;
    throw new ServiceError('approval_expired', message);
  }
  try {
    const result = authority ? undefined : await carryOut(deps, approval);
    if (authority) await carryOutAuthority(deps, approval);
    // A repeated entry ends no approval.
    await deps.stores.approvals.finish(id);
    return { approval: await findApproval(deps, id), ...(result && { result }) };
  } catch (error) {
    if (!isFinal(error)) throw error;
    const { code, message } = error;
    if (await deps.stores.approvals.refuse(id, { code, message })) throw error;
    const ended = await findApproval(deps, id);
    if (ended.state === 'done') return { approval: ended };
    throw error;
  }
}

async function carryOut(
  deps: ApproveDeps,
  approval: ApprovalDocument,
): Promise<NonNullable<Approved['result']>> {
  const { _id: approval_id, act, resource, target, input, reason } = approval;
  const { requested_by: operator, decided_by } = approval;
  const note = { operator, reason, approved_by: decided_by ?? undefined, approval_id };
  const what = act.slice(act.indexOf('.') + 1);
  if (act === CLEAR_ACT) return await clearApproved(deps, input, note);
  if (act === RESEND_ACT) {
    const connector = String(input['connector']);
    const payouts = await resendFile({ ...deps, connector }, target, { ...input, ...note });
    return { payouts };
  }
  if (act === 'statement.match') {
    const line = await matchByHand(deps, target, { ...ManualMatch.parse(input), ...note });
    if (!isApprovalRequired(line)) return line;
  } else if (resource === null) {
    return await postBalanceAct(deps, readBalanceCall(act, input), note);
  } else {
    const actDeps = await deps.openActDeps();
    const call = { ...input, ...note, what, by: deps.by };
    if (approval.plan !== undefined) return await carryOutPlan(deps, actDeps, approval, call);
    const result = await actOn(actDeps, resource, target, call);
    if (!isApprovalRequired(result)) return result;
  }
  throw new ServiceError('approval_decided', `The approval ${approval_id} has ended.`);
}

/**
 * Does each act of a plan once, if all are as they were planned.
 * @throws ServiceError `approval_differs`; `not_all_done` where a repeat may do more
 */
async function carryOutPlan(
  deps: ApproveDeps,
  actDeps: ActDeps,
  { _id: approval_id, resource, currency, plan = [] }: ApprovalDocument,
  act: Act,
): Promise<readonly Outcome[]> {
  if (resource === null) throw new Error(`The plan ${approval_id} names no resource.`);
  const left = plan.filter(({ is_done }) => !is_done);
  const ids = left.map(({ id }) => id);
  for (const [index, now] of (await planActs(deps, resource, act.what, ids)).entries()) {
    const then = left[index];
    const isSame = now.currency === currency && now.amount === then?.amount;
    if (isSame && isInFlight(resource, now.status) === isInFlight(resource, then.status)) continue;
    // Another approver may have done it since.
    const { plan: latest = [] } = await findApproval(deps, approval_id);
    if (latest.some(({ id, is_done }) => id === now.id && is_done)) continue;
    const message =
      `The ${resource} ${now.id} is not as it was planned: ${now.status}, with ${now.amount} ` +
      `${now.currency}. Of ${plan.length} acts, ${plan.length - left.length} are done; plan again.`;
    throw new ServiceError('approval_differs', message);
  }
  const each = { verify: async () => undefined, onOutcome: deps.onOutcome ?? (() => undefined) };
  const outcomes = await actOnMany({ ...actDeps, ...deps }, resource, ids, act, each);
  const ended = outcomes.filter(
    (outcome) => outcome.result === 'done' || ('error' in outcome && isFinal(outcome.error)),
  );
  if (ended.length === ids.length) return outcomes;
  const message = `Of ${ids.length} acts, ${ids.length - ended.length} are not done, or not known to be done: repeat it.`;
  throw new ServiceError('not_all_done', message);
}

function isFinal(error: unknown): error is ServiceError {
  return error instanceof ServiceError && FINAL.includes(error.code);
}
