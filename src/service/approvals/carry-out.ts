import type { VerifiedOperator } from '../../domain/account/operator';
import { isApprovalRequired } from '../../domain/approval';
import { ServiceError } from '../../domain/errors';
import type { ActSender } from '../../domain/operator-act';
import type { UnclearedEntry } from '../../ledger/uncleared';
import type { ApprovalDocument } from '../../store/approvals';
import { type Posted, postBalanceAct, readBalanceCall } from '../balances/act';
import type { WriteDeps } from '../deps';
import { type ActDeps, type ActResult, actOn } from '../operators/act';
import { RESEND_ACT, resendFile } from '../sepa/files';
import { CLEAR_ACT, clearApproved } from '../statements/clear';
import { decide, findApproval } from './decide';

interface ApproveDeps extends WriteDeps {
  /** Service database. */
  database: string;
  openActDeps: () => Promise<ActDeps>;
  by?: ActSender;
}

/** Another try would not change them. */
const FINAL: readonly string[] = [
  'amounts_differ',
  'approval_decided',
  'approval_differs',
  'approval_expired',
  'bank_reference_used',
  'entry_not_open',
  'held_by_bank',
  'insufficient_balance',
  'invalid_request',
  'not_in_suspense',
  'not_reversible',
  'nothing_owed',
  'operation_id_used',
  'operation_not_found',
  'sepa_file_not_refused',
  'wrong_state',
];

type Carried = Posted | ActResult | UnclearedEntry[] | { payouts: number };

type Approved =
  | { approval: ApprovalDocument; result?: undefined }
  | { approval: ApprovalDocument; result: Carried };

/**
 * Approves a request and carries its act out once. Repeat it after an unknown outcome: the act ends
 * the approval in its own transaction.
 * @returns without a result where it was done before, or was only confirmed
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
  if (approval.expires_at <= deps.now().toISOString()) {
    const message = `The request ${id} was approved, and not carried out in time: repeat it.`;
    throw new ServiceError('approval_expired', message);
  }
  try {
    const result = await carryOut(deps, approval);
    // A repeated entry ends no approval.
    await deps.stores.approvals.finish(id);
    return { approval: await findApproval(deps, id), result };
  } catch (error) {
    if (!(error instanceof ServiceError) || !FINAL.includes(error.code)) throw error;
    const { code, message } = error;
    if (await deps.stores.approvals.refuse(id, { code, message })) throw error;
    const ended = await findApproval(deps, id);
    if (ended.state === 'done') return { approval: ended };
    throw error;
  }
}

async function carryOut(
  deps: ApproveDeps,
  { _id: approval_id, act, resource, target, input, ...request }: ApprovalDocument,
): Promise<Carried> {
  const { requested_by: operator, reason } = request;
  const approved_by = request.decided_by ?? undefined;
  const note = { operator, reason, approved_by, approval_id };
  if (act === CLEAR_ACT) return await clearApproved(deps, input, note);
  if (act === RESEND_ACT) {
    const connector = String(input.connector);
    const payouts = await resendFile({ ...deps, connector }, target, { ...input, ...note });
    return { payouts };
  }
  if (resource === null) return await postBalanceAct(deps, readBalanceCall(act, input), note);
  const call = { ...input, ...note, what: getActName(act), by: deps.by };
  const result = await actOn(await deps.openActDeps(), resource, target, call);
  if (!isApprovalRequired(result)) return result;
  throw new ServiceError('approval_decided', `The approval ${approval_id} has ended.`);
}

function getActName(act: string): string {
  return act.slice(act.indexOf('.') + 1);
}
