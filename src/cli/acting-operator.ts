import { randomUUID } from 'node:crypto';
import { isDuplicateKey } from '../base/mongo';
import { ServiceError } from '../domain/errors';
import { type ApprovalRequired, isApprovalRequired, needsKey } from '../domain/operators/approval';
import { type ApprovedCommand, findApprovedAct } from '../domain/operators/authority';
import type { VerifiedOperator } from '../domain/operators/operator-act';
import type { WriteDeps } from '../service/access';
import {
  type AuthorityRequest,
  auditApproved,
  getIdPart,
  requestAuthority,
} from '../service/operators/approvals/carry-out';
import { auditAs, getSystemUser } from '../service/operators/deps';
import { verifyOperator } from '../service/operators/keys';
import type { CliContext } from './context';
import { printFields } from './output';

interface Acting {
  operator: string | undefined;
  verified?: VerifiedOperator;
}

/**
 * Identifies the operator: on live by OPERATOR_KEY, in the sandbox by the typed name.
 * @throws ServiceError `operator_key_required`, `operator_key_invalid` or `operator_key_revoked`
 */
export async function identifyOperator(
  context: Pick<CliContext, 'operatorKey' | 'readDeps'>,
  { livemode, operator }: { livemode: boolean; operator: string | undefined },
): Promise<Acting> {
  if (!livemode) return { operator };
  const verified = await verifyOperator(await context.readDeps(), context.operatorKey);
  return { operator: verified.name, verified };
}

/**
 * Opens what an act needs, and says who does it.
 * @throws ServiceError as `identifyOperator`
 */
export async function openActing(
  context: CliContext,
  {
    livemode,
    what,
    operator: typed,
  }: { livemode: boolean; what: string; operator?: string | undefined },
) {
  const keyed = { livemode: livemode && needsKey(what) };
  const { deps, note, approval } = await openNoted(context, keyed, { operator: typed });
  const by = getSystemUser();
  const names = { operator: note.operator ?? by.system_user, by };
  return { deps: await context.withTemporal(deps), verified: approval.verified, names };
}

/**
 * Opens what a change needs that is noted with who makes it and why, and with what an approval is
 * requested where it is above the limits.
 * @throws ServiceError as `identifyOperator`
 */
export async function openNoted(
  context: CliContext,
  { livemode }: { livemode: boolean },
  { operator: typed, reason }: { operator?: string | undefined; reason?: string | undefined },
) {
  const { operator, verified } = await identifyOperator(context, { livemode, operator: typed });
  const { limits } = context.settings();
  const deps = await openAudited(context, verified);
  return { deps, note: { operator, reason }, approval: { verified, limits } };
}

interface AuthorityCall extends Omit<AuthorityRequest, 'verified' | 'reason'> {
  /** Whether this call needs an approval, as the table says. */
  isNeeded: boolean;
  reason?: string | undefined;
}

/**
 * Does an act, or, on live, requests that another operator approves it. Where it prints a secret, the
 * requester repeats the command after that.
 * @param act is called with a part for the id of what it makes
 * @throws ServiceError as `identifyOperator` and `requestAuthority`; `operator_required`
 */
export async function withAuthority(
  context: CliContext,
  command: ApprovedCommand,
  { isNeeded, reason, operation_id, ...request }: AuthorityCall,
  act: (deps: WriteDeps, idPart: string) => Promise<void>,
): Promise<void> {
  if (!isNeeded) return await act(await context.actingDeps(), randomUUID());
  const { deps, verified, reason: why } = await openKeyed(context, reason);
  const isRepeated = findApprovedAct(command)?.isRepeated === true;
  const id = operation_id ?? (isRepeated ? randomUUID() : undefined);
  const named = { ...request, operation_id: id, verified, reason: why };
  const answer = await requestAuthority(deps, command, named);
  if (isApprovalRequired(answer)) {
    const isNew = operation_id === undefined && id !== undefined;
    return printApprovalRequired(context, { ...answer, ...(isNew && { operation_id: id }) });
  }
  try {
    await act({ ...deps, audit: auditApproved(deps, answer) }, getIdPart(answer));
  } catch (error) {
    // Another repeat was faster, and made what has this id.
    if (isDuplicateKey(error)) await requestAuthority(deps, command, named);
    throw error;
  }
}

/**
 * Opens what a change on live needs, with an operator's key and a reason.
 * @throws ServiceError as `identifyOperator`; `operator_required`
 */
export async function openKeyed(context: CliContext, reason: string | undefined) {
  const verified = await verifyOperator(await context.readDeps(), context.operatorKey);
  if (reason === undefined) {
    const message = 'On live, OPERATOR_KEY and --reason say who does this and why.';
    throw new ServiceError('operator_required', message);
  }
  return { deps: await openAudited(context, verified), verified, reason };
}

/** Audit lines name the operator whose key was verified. */
async function openAudited(context: CliContext, verified: VerifiedOperator | undefined) {
  const deps = await context.actingDeps();
  return verified === undefined ? deps : { ...deps, audit: auditAs(deps, verified.name) };
}

/** @throws ServiceError `invalid_usage` */
export function assertNamed(
  context: Pick<CliContext, 'operatorKey'>,
  operator: string | undefined,
): void {
  if (operator === undefined && context.operatorKey === undefined) {
    throw new ServiceError('invalid_usage', "required option '--operator <name>' not specified");
  }
}

export function printApprovalRequired(
  context: Pick<CliContext, 'print'>,
  json: ApprovalRequired & { operation_id?: string },
): void {
  const { approval_id, operation_id } = json;
  const wait = 'Nothing was done yet. Another operator runs `approval approve` within 24 hours.';
  const then = operation_id && ` Then repeat this with --operation-id ${operation_id}.`;
  printFields(context, { json, note: `${wait}${then ?? ''}` }, [
    ['Approval required', approval_id],
    ['Operation id', operation_id],
  ]);
}
