import { z } from 'zod';
import { NETWORKS } from '../../../domain/crypto/assets';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import {
  type ApprovalRequired,
  isApprovalRequired,
  requireApproval,
} from '../../../domain/operators/approval';
import { type ApprovedCommand, findApprovedAct } from '../../../domain/operators/authority';
import {
  type ActSender,
  isSameOperator,
  type VerifiedOperator,
} from '../../../domain/operators/operator-act';
import type { UnclearedEntry } from '../../../ledger/uncleared';
import { isInFlight } from '../../../lifecycles';
import type { Routes } from '../../../routing';
import type { ApprovalDocument } from '../../../store/approvals';
import type { Audit } from '../../../store/audit';
import type { LineDocument } from '../../../store/statement-lines';
import type { WriteDeps } from '../../access';
import { releaseConnector } from '../../banks/connectors';
import { RESEND_ACT, resendFile } from '../../banks/sepa/files';
import { CLEAR_ACT, clearApproved, ManualMatch, matchByHand } from '../../banks/statements/lines';
import { AccountChange, setFrozen, updateAccount } from '../../merchants/accounts';
import { type Posted, postBalanceAct, readBalanceCall } from '../../money/balances/act';
import { setWallet } from '../../money/wallets';
import {
  type Act,
  type ActDeps,
  type ActResult,
  actOn,
  actOnMany,
  type Outcome,
  planActs,
} from '../act';
import { decide, findApproval } from './decide';
import { hashInput, requestApproval } from './request';

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
  'evidence_not_supported',
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

export interface AuthorityRequest {
  account_id: string | null;
  /** Params of the command, without a secret. */
  input: ApprovalDocument['input'];
  /** Makes a repeat find the request; required where the act prints a secret. */
  operation_id?: string | undefined;
  verified: VerifiedOperator;
  reason: string;
}

/**
 * Requests once that another operator approves a command.
 * @returns the approval once its requester may repeat the command, which then does the act
 * @throws ServiceError `operation_id_used`, `approval_expired`
 * @see docs/operators.md#approvals
 */
export async function requestAuthority(
  deps: WriteDeps,
  command: ApprovedCommand,
  { account_id, operation_id, verified, reason, ...request }: AuthorityRequest,
): Promise<ApprovalRequired | ApprovalDocument> {
  const input = omitUndefined(request.input);
  const id = await requestApproval(deps, deps.audit, {
    act: command,
    ...{ account_id, amount: null, currency: null, resource: null, input },
    target: operation_id ?? hashInput(input).slice(0, 32),
    ...{ operator: verified.name, verified, reason },
  });
  const approval = await findApproval(deps, id);
  const { state, requested_by, expires_at } = approval;
  if (findApprovedAct(command)?.isRepeated !== true) return requireApproval(id);
  if (!isSameOperator(requested_by, verified.name)) {
    const message = `${requested_by} asks for this: take another --operation-id.`;
    throw new ServiceError('operation_id_used', message);
  }
  if (state === 'requested') return requireApproval(id);
  if (state === 'approved' && expires_at > deps.now().toISOString()) return approval;
  if (state === 'done') {
    const message =
      `The request ${id} is done, and what it printed is not shown again. Without that, revoke ` +
      `what it made (a key’s id ends in ${getIdPart(approval)}), and ask again with another ` +
      '--operation-id.';
    throw new ServiceError('operation_id_used', message);
  }
  throw new ServiceError('approval_expired', `The request ${id} expired at ${expires_at}.`);
}

/** Part of an id that what an approval makes has, so that it is made once. */
export function getIdPart({ _id }: Pick<ApprovalDocument, '_id'>): string {
  return _id.slice(_id.indexOf('_') + 1);
}

/** Says who asked, who approved and why, in the act's line, whose transaction ends the approval. */
export function auditApproved(
  { stores, audit }: Pick<WriteDeps, 'stores' | 'audit'>,
  { _id: approval_id, act: command, requested_by, decided_by, reason }: ApprovalDocument,
): Audit {
  const { act, isRepeated = false } = findApprovedAct(command) ?? {};
  return async (change, session) => {
    if (change.act !== act) return await audit(change, session);
    if (!(await stores.approvals.finish(approval_id, session, isRepeated))) {
      const message = `The approval ${approval_id} has ended meanwhile; nothing was done.`;
      throw new ServiceError('approval_decided', message);
    }
    const by = { requested_by, approved_by: decided_by, reason };
    await audit({ ...change, after: { ...change.after, ...by, approval_id } }, session);
  };
}

const OfAccount = z.object({ account_id: z.string() });

/** Does what a request without a secret asks for. */
async function carryOutAuthority(
  deps: WriteDeps & Routes,
  approval: ApprovalDocument,
): Promise<void> {
  const { act, input, reason, requested_by: operator } = approval;
  const acting = { ...deps, audit: auditApproved(deps, approval) };
  switch (act) {
    case 'account unfreeze': {
      const { account_id, frozen_at } = OfAccount.extend({ frozen_at: z.string() }).parse(input);
      await setFrozen(acting, account_id, { freeze: false, reason, operator, frozen_at });
      return;
    }
    case 'account update': {
      const { account_id, ...change } = OfAccount.extend(AccountChange.shape).parse(input);
      await updateAccount(acting, account_id, change, { mayLift: true });
      return;
    }
    case 'wallet set': {
      const Wallet = OfAccount.extend({ network: z.enum(NETWORKS), address: z.string() });
      await setWallet(acting, { ...Wallet.parse(input), livemode: true });
      return;
    }
    case 'connector release': {
      const { name: connector, stop } = z
        .object({ name: z.string(), stop: z.string() })
        .parse(input);
      await releaseConnector(acting, { connector, livemode: true, stop }, { operator, reason });
      return;
    }
    default:
      throw new Error(`No approval carries out ${act}.`);
  }
}
