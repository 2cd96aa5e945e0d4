import { isDisputeClosed } from '../../domain/dispute/dispute';
import { Refusal } from '../../domain/errors';
import type { SubmitEvidence } from '../../domain/wire/disputes';
import type { DisputeDocument } from '../../store/disputes';
import type { MerchantDeps, Owner } from '../deps';
import { createGet, createList } from './read';

type DisputeDeps = Pick<MerchantDeps, 'stores' | 'temporal' | 'now'>;

/** @throws Refusal 404 */
export const getDispute = createGet('dispute', ({ disputes }) => disputes);
export const listDisputes = createList(({ disputes }) => disputes);

/**
 * A repeat of the same evidence changes nothing.
 * @throws Refusal 404; 422 `dispute_closed`, `evidence_not_supported`; 503
 */
export async function submitEvidence(
  deps: DisputeDeps,
  caller: Owner,
  id: string,
  _evidence: SubmitEvidence,
): Promise<DisputeDocument> {
  return refuseAnswer(await getDispute(deps, caller, id));
}

/**
 * A repeat changes nothing.
 * @throws Refusal 404; 422 `dispute_closed`, `evidence_not_supported`; 503
 */
export async function acceptDispute(
  deps: DisputeDeps,
  caller: Owner,
  id: string,
): Promise<DisputeDocument> {
  return refuseAnswer(await getDispute(deps, caller, id));
}

function refuseAnswer({ status }: DisputeDocument): never {
  if (isDisputeClosed(status)) throw new Refusal('dispute_closed', `The dispute is ${status}.`);
  throw new Refusal('evidence_not_supported', 'Its bank takes no answer over this service.');
}
