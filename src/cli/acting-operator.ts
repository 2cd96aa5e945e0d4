import type { VerifiedOperator } from '../domain/account/operator';
import { type ApprovalRequired, needsKey } from '../domain/approval';
import { ServiceError } from '../domain/errors';
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
  const by = getSystemUser();
  const { verified, operator = by.system_user } = await identifyOperator(context, {
    livemode: livemode && needsKey(what),
    operator: typed,
  });
  const deps = await context.withTemporal(await openAudited(context, verified));
  return { deps, verified, names: { operator, by } };
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
  json: ApprovalRequired,
): void {
  const { approval_id } = json;
  const note = 'Nothing was done yet. Another operator runs `approval approve` within 24 hours.';
  printFields(context, { json, note }, [['Approval required', approval_id]]);
}
