import { patched } from '@temporalio/workflow';
import type { RecordAttention } from '../../activities/record-inputs';
import type { CommonFacts, Life } from './life';
import type { AuditedAct } from './operator-acts';

/**
 * Whether a mark outlives what moves without an operator: other money was spoken of, and nobody has
 * looked. A run from before ends it by itself.
 */
export function isForPerson(mark: string | null, audit: AuditedAct | undefined): boolean {
  return mark === 'amount_differs' && audit === undefined && patched('keep-amount-differs');
}

/** A mark, later than the one before also where both are set at one time of the workflow. */
export function markingOf<Attention extends string>(
  resource: Life<string, Attention, CommonFacts>,
  attention: Attention | null,
  audit: RecordAttention<Attention>['audit'],
): RecordAttention<Attention> {
  resource.markedAt = Math.max(Date.now(), resource.markedAt + 1);
  const { version, markedAt: marked_at } = resource;
  return { ...addressOf(resource), version, attention, audit, marked_at };
}

/** Names a resource, and the request that its writes go back to. */
export function addressOf({ id, facts }: Life<string, string, CommonFacts>) {
  return { resource_id: id, request_id: facts.request_id };
}
