import { z } from 'zod';
import { isSameOperator, type VerifiedOperator } from '../../../domain/account/operator';
import { type ApprovalRequired, requireApproval } from '../../../domain/approval';
import { type ApprovedCommand, findApprovedAct } from '../../../domain/authority';
import { NETWORKS } from '../../../domain/crypto/assets';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import type { Routes } from '../../../routing';
import type { ApprovalDocument } from '../../../store/approvals';
import type { Audit } from '../../../store/audit';
import { releaseConnector } from '../../banks/connectors';
import type { WriteDeps } from '../../deps';
import { AccountChange, setFrozen, updateAccount } from '../../merchants/accounts';
import { setWallet } from '../../money/wallets';
import { findApproval } from './decide';
import { hashInput, requestApproval } from './request';

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
export async function carryOutAuthority(
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
