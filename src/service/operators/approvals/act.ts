import type { VerifiedOperator } from '../../../domain/account/operator';
import { type ApprovalRequired, isApprovalRequired, needsKey } from '../../../domain/approval';
import type { CallbackResource } from '../../../domain/callback/callback';
import { ServiceError } from '../../../domain/errors';
import type { WriteDeps } from '../../deps';
import { type Act, type ActDeps, type ActResult, actOn } from '../act';
import { findResource } from '../resource';
import { confirmOwn } from './decide';

/**
 * Acts that move live money need a verified operator, who confirms the request of an approval.
 * @throws ServiceError `operator_key_required`, and those of `actOn`
 */
export async function actAsOperator(
  deps: ActDeps & WriteDeps,
  kind: CallbackResource,
  id: string,
  act: Act,
  verified: VerifiedOperator | undefined,
): Promise<ActResult | ApprovalRequired> {
  const { livemode } = await findResource(deps.stores, kind, id);
  if (livemode && verified === undefined && needsKey(act.what)) {
    throw new ServiceError('operator_key_required', 'On live this needs an operator’s key.');
  }
  const answer = await actOn(deps, kind, id, act);
  if (verified !== undefined && isApprovalRequired(answer)) {
    await confirmOwn(deps, answer.approval_id, verified);
  }
  return answer;
}
