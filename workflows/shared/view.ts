import type { SearchAttributeUpdatePair } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { CallbackResource } from '../../src/domain/callback/callback';
import type { RuleViolation } from '../../src/domain/errors';
import { describeRemedy, findRemedy } from '../../src/domain/remedies';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';
import type { CommonFacts, UpsertedLabels, WorkflowState } from './state';

export interface Waiting {
  what: string;
  updates: string;
}

export const FINAL: Waiting = { what: 'nothing: final', updates: 'none' };

export interface View<Status extends string> {
  waitingFor: Record<Status, Waiting>;
}

/** @param until end of a clause */
export function updateDetails<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
>(
  state: WorkflowState<Status, Attention, Facts>,
  { noun, view, until }: { noun: CallbackResource; view: View<Status>; until: string },
): void {
  const { status, attention, labels } = state;
  const { amount, assetAmount } = labels;
  upsertLabels(state, { status, attention, amount, assetAmount });
  const { what, updates } = view.waitingFor[status];
  const lines = [
    `**${status}** since ${new Date(state.enteredAt).toISOString()} (version ${state.version})`,
    '',
    `Waiting for: ${what}${until}. Updates: ${updates}.`,
  ];
  if (attention !== null) {
    const remedy = findRemedy(noun, attention);
    const text = remedy === undefined ? '' : `${describeRemedy(remedy)} `;
    lines.push('', `⚠ **${attention}**: ${text}Then send \`acknowledge\`, unless it clears.`);
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
