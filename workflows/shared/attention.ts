import type { RecordAttention } from '../../activities/shared/record-inputs';
import type { AuditedAct } from './operator-acts';
import type { CommonFacts, WorkflowState } from './state';

/** Whether only an operator ends this attention reason. */
export function needsOperator(reason: string | null, audit: AuditedAct | undefined): boolean {
  return reason === 'amount_differs' && audit === undefined;
}

/** Builds an attention reason with its time, later than the previous one also within one task. */
export function buildAttention<Attention extends string>(
  resource: WorkflowState<string, Attention, CommonFacts>,
  attention: Attention | null,
  audit: RecordAttention<Attention>['audit'],
): RecordAttention<Attention> {
  resource.attentionAt = Math.max(Date.now(), resource.attentionAt + 1);
  const { version, attentionAt: attention_at } = resource;
  return { ...getResourceRef(resource), version, attention, audit, attention_at };
}

export function getResourceRef({ id, facts }: WorkflowState<string, string, CommonFacts>) {
  return { resource_id: id, request_id: facts.request_id };
}
