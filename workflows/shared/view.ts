import type { SearchAttributeUpdatePair } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { RuleViolation } from '../../src/domain/lifecycle';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';
import type { CommonFacts, Life, UpsertedLabels } from './life';

/** A state in an operator's words: the thing it waits for, and the updates that are possible. */
export interface Waiting {
  what: string;
  levers: string;
}

export const FINAL: Waiting = { what: 'nothing: final', levers: 'none' };

export const MALFORMED_CURE =
  'A callback could not be read; it is in the journal. Ask the connector team.';

export const SENDER_CURE =
  'A callback came whose sender is not known; it is kept, and moved nothing. The journal says why. ' +
  'If the bank says that it is true, let its connector send it again, signed under a key that counts.';

/** The words in which operators are told of one kind of resource. */
export interface View<Status extends string, Attention extends string> {
  waitsFor: Record<Status, Waiting>;
  /** The cure for each reason to need a person. */
  cures: Record<Attention, string>;
}

/**
 * Brings the list (search attributes) and the details up to date.
 * @param until how long it waits, as the end of a clause; empty where nothing is due
 */
export function showLife<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
>(
  life: Life<Status, Attention, Facts>,
  { waitsFor, cures }: View<Status, Attention>,
  until: string,
): void {
  const { status, attention, labels } = life;
  const { amount, assetAmount } = labels;
  upsertLabels(life, { status, attention, amount, assetAmount });
  const { what, levers } = waitsFor[status];
  const lines = [
    `**${status}** since ${new Date(life.since).toISOString()} (version ${life.version})`,
    '',
    `Waits for: ${what}${until}. Updates: ${levers}.`,
  ];
  if (attention !== null) lines.push('', `⚠ **${attention}**: ${cures[attention]}`);
  // Newest first: the UI's frame cuts off the end.
  const journal = [...life.journal].reverse();
  if (journal.length > 0) lines.push('', ...journal.map((line) => `- ${line}`));
  setCurrentDetails(lines.join('\n'));
}

/** Shows that it was never accepted: it has no state of the resource. */
export function showRefusal(labels: UpsertedLabels, { code, message }: RuleViolation): void {
  upsertLabels({ labels }, { status: 'refused', attention: null });
  setCurrentDetails(
    `**Refused** with \`${code}\`: ${message}\n\nNothing is stored, nothing moved.`,
  );
}

/** Sets only what changed: each is a line of history. */
export function upsertLabels(life: { labels: UpsertedLabels }, now: UpsertedLabels): void {
  const { status, attention, amount, assetAmount } = now;
  const pairs: SearchAttributeUpdatePair[] = [];
  if (life.labels.status !== status) pairs.push({ key: SEARCH_KEYS.status, value: status });
  if (life.labels.attention !== attention) {
    pairs.push({ key: SEARCH_KEYS.attention, value: attention }); // null unsets it
  }
  if (amount !== undefined && life.labels.amount !== amount) {
    pairs.push({ key: SEARCH_KEYS.amount, value: amount });
  }
  if (assetAmount !== undefined && life.labels.assetAmount !== assetAmount) {
    pairs.push({ key: SEARCH_KEYS.assetAmount, value: assetAmount });
  }
  if (pairs.length > 0) upsertSearchAttributes(pairs);
  life.labels = now;
}
