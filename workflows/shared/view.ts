import type { SearchAttributeUpdatePair } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { RuleViolation } from '../../src/domain/errors';
import type { CommonAttention } from '../../src/domain/lifecycle';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';
import type { CommonFacts, UpsertedLabels, WorkflowState } from './state';

export interface Waiting {
  what: string;
  updates: string;
}

export const FINAL: Waiting = { what: 'nothing: final', updates: 'none' };

export const COMMON_REMEDIES: Record<CommonAttention, string> = {
  malformed_callback:
    'A callback could not be read; the activity log says why. Ask the bank what it meant.',
  sender_not_known:
    'A callback without a valid signature was not applied. If the bank confirms it, let its ' +
    'connector send it again, signed with a valid key.',
  record_behind:
    'MongoDB is older than the workflow. Nothing is applied until you run `reconcile --apply`; ' +
    'the next transition then clears this reason.',
  message_given_up:
    'A message was not applied, because the record kept changing; the activity log names it. Of a ' +
    'callback, run `callback deliver ID --again`; otherwise ask the bank.',
  books_refused:
    'A message was not applied, because MongoDB refused its entry; the activity log names both. This is a ' +
    'fault of the service: report it to its developers. Once it is gone, run `callback deliver ID --again` ' +
    'for a callback; otherwise ask the bank.',
};

export interface View<Status extends string, Attention extends string> {
  waitingFor: Record<Status, Waiting>;
  remedies: Record<Attention, string>;
}

/** @param until end of a clause */
export function updateDetails<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
>(
  state: WorkflowState<Status, Attention, Facts>,
  { waitingFor, remedies }: View<Status, Attention>,
  until: string,
): void {
  const { status, attention, labels } = state;
  const { amount, assetAmount } = labels;
  upsertLabels(state, { status, attention, amount, assetAmount });
  const { what, updates } = waitingFor[status];
  const lines = [
    `**${status}** since ${new Date(state.enteredAt).toISOString()} (version ${state.version})`,
    '',
    `Waiting for: ${what}${until}. Updates: ${updates}.`,
  ];
  if (attention !== null) {
    const remedy = `${remedies[attention]} Then send \`acknowledge\`, unless it clears.`;
    lines.push('', `⚠ **${attention}**: ${remedy}`);
  }
  // Newest first: the UI's frame cuts off the end.
  const activityLog = [...state.activityLog].reverse();
  if (activityLog.length > 0) lines.push('', ...activityLog.map((line) => `- ${line}`));
  setCurrentDetails(lines.join('\n'));
}

export function showRefusal(
  labels: UpsertedLabels,
  { code, message }: RuleViolation,
  attention: string | null = null,
): void {
  upsertLabels({ labels }, { status: 'refused', attention });
  setCurrentDetails(
    `**Refused** with \`${code}\`: ${message}\n\nNothing is stored, nothing moved.`,
  );
}

/** Sets only what changed: each adds a line to the history. */
export function upsertLabels(
  state: { labels: UpsertedLabels; version?: number },
  now: UpsertedLabels,
): void {
  const { status, attention, amount, assetAmount } = now;
  const pairs: SearchAttributeUpdatePair[] = [];
  if (state.labels.status !== status) pairs.push({ key: SEARCH_KEYS.status, value: status });
  if (state.labels.attention !== attention) {
    pairs.push({ key: SEARCH_KEYS.attention, value: attention }); // null unsets it
  }
  if (amount !== undefined && state.labels.amount !== amount) {
    pairs.push({ key: SEARCH_KEYS.amount, value: amount });
  }
  if (assetAmount !== undefined && state.labels.assetAmount !== assetAmount) {
    pairs.push({ key: SEARCH_KEYS.assetAmount, value: assetAmount });
  }
  const shown = workflowInfo().typedSearchAttributes.get(SEARCH_KEYS.version);
  if (state.version !== undefined && state.version !== shown) {
    pairs.push({ key: SEARCH_KEYS.version, value: state.version });
  }
  if (pairs.length > 0) upsertSearchAttributes(pairs);
  state.labels = now;
}
