import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import type { CallbackResource } from '../../src/domain/banks/callback';
import { omitUndefined } from '../../src/domain/defined';
import { LIMIT_REACHED, readApprovalLimits } from '../../src/domain/operators/approval';
import {
  type ActDecision,
  authorizeAct,
  countCredit,
  LimitReached,
  type ResourceActRequest,
} from '../../src/service/operators/approvals/request';
import type { Actor } from '../../src/store/audit';
import { auditBy, auditOnce } from '../../src/store/audit';
import type { AuditEntry } from '../../src/store/resource';

import type { Act, RecordDeps } from './record-table';

interface Subject {
  resource: CallbackResource;
  resource_id: string;
  account_id: string;
  livemode: boolean;
}

type CountDeps = Pick<RecordDeps, 'stores' | 'isRebuild' | 'approvalLimits'>;

interface ActChange {
  act: Act;
  id: string;
  at: string;
  before: string;
  after: string;
}

export function toStoredAct({ who, what, why, approved_by, approval_id, ...act }: Act) {
  const bank_confirmed_not_executed = act.bank_confirmed_not_executed || undefined;
  return omitUndefined({ who, what, why, approved_by, approval_id, bank_confirmed_not_executed });
}

export function buildAuditEntry({ act, id, at, before, after }: ActChange): AuditEntry {
  return { ...toStoredAct(act), id, when: at, before, after };
}

/**
 * Audits the act, and ends its approval, or counts what it credits without one. A text with a secret is left out, since the act itself is
 * valid.
 * @throws ApplicationFailure not retryable, `approval_decided` when the approval has ended
 *   meanwhile; `limit_reached` when other acts have reached a limit
 */
export async function auditAct(
  { stores, isRebuild, approvalLimits }: CountDeps,
  { resource, resource_id: target, account_id, livemode }: Subject,
  { act, id, at, before, after }: ActChange,
  session: ClientSession,
): Promise<void> {
  const { who: operator, what, by } = act;
  const { approval_id, bank_confirmed_not_executed } = toStoredAct(act);
  if (approval_id !== undefined) {
    const isFinished = await stores.approvals.finishAct(approval_id, target, session);
    if (!isFinished && !isRebuild) {
      const message = `The approval ${approval_id} has ended meanwhile; nothing was done.`;
      throw ApplicationFailure.nonRetryable(message, 'approval_decided');
    }
  }
  if (approval_id === undefined && act.credited !== undefined) {
    const { amount, currency } = act.credited;
    // What was done once is never refused.
    const limits = isRebuild ? [] : [approvalLimits ?? readApprovalLimits()];
    const counted = { amount: BigInt(amount), currency, account_id };
    const owners = { operator, account_id };
    const sums = { stores, now: () => new Date() };
    const since = isRebuild && new Date(at);
    try {
      await countCredit(sums, limits, owners, counted, session, since);
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      throw ApplicationFailure.nonRetryable(error.message, LIMIT_REACHED);
    }
  }
  const { why, approved_by } = act;
  const actor: Actor =
    by === undefined ? { via: 'workflow', operator } : { via: 'command_line', ...by, operator };
  const change = {
    act: `${resource}.act`,
    ...{ account_id, livemode, target },
    before: { state: before },
    after: { what, state: after, why, approved_by, approval_id, bank_confirmed_not_executed },
  } as const;
  await auditOnce(stores, { change, actor, once: { id, at } }, session);
}

/** Checks an operator's act before it moves money of a live resource; writes no resource. */
export function createAuthorizeAct(deps: RecordDeps) {
  const { mongo, stores, approvalLimits = readApprovalLimits() } = deps;
  const now = () => new Date();
  return {
    authorizeAct: (request: ResourceActRequest): Promise<ActDecision> => {
      const audit = auditBy({ stores, now }, { via: 'workflow', operator: request.operator });
      return authorizeAct({ mongo, stores, now }, approvalLimits, audit, request);
    },
  };
}
