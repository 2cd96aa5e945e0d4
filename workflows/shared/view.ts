import { defineSearchAttributeKey, type SearchAttributeUpdatePair } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { RefusedFor } from '../../src/domain/refund-rules';
import type { Life, Shown } from './life';

const key = {
  status: defineSearchAttributeKey('ServiceStatus', 'KEYWORD'),
  attention: defineSearchAttributeKey('ServiceAttention', 'KEYWORD'),
  amount: defineSearchAttributeKey('ServiceAmount', 'INT'),
};

/** What a resource waits for, and what an operator can do about it. */
export interface Waiting {
  what: string;
  levers: string;
}

export const FINAL: Waiting = { what: 'nothing: final', levers: 'none' };

export const MALFORMED_CURE =
  'A callback could not be read; it is in the journal. Ask the connector team.';

/** What operators are told of one kind of resource. */
export interface View<Status extends string, Attention extends string> {
  waitsFor: Record<Status, Waiting>;
  /** Why it needs a person, and what mends it. */
  cures: Record<Attention, string>;
}

/**
 * Brings the list (search attributes) and the details up to date.
 * @param until how long it waits, as the end of a clause; empty where nothing is due
 */
export function showLife<Status extends string, Attention extends string>(
  life: Life<Status, Attention, unknown>,
  { waitsFor, cures }: View<Status, Attention>,
  until: string,
): void {
  const { status, attention, amount } = life;
  showColumns(life, { status, attention, amount });
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

/** It was never accepted: no state of the resource is its. */
export function showRefusal(life: { shown: Shown }, { code, message }: RefusedFor): void {
  showColumns(life, { status: 'refused', attention: null });
  setCurrentDetails(
    `**Refused** with \`${code}\`: ${message}\n\nNothing is stored, nothing moved.`,
  );
}

/** Sets only what changed: each is a line of history. */
export function showColumns(life: { shown: Shown }, now: Shown): void {
  const { status, attention, amount } = now;
  const pairs: SearchAttributeUpdatePair[] = [];
  if (life.shown.status !== status) pairs.push({ key: key.status, value: status });
  if (life.shown.attention !== attention) {
    pairs.push({ key: key.attention, value: attention }); // null unsets it
  }
  if (amount !== undefined && life.shown.amount !== amount) {
    pairs.push({ key: key.amount, value: amount });
  }
  if (pairs.length > 0) upsertSearchAttributes(pairs);
  life.shown = now;
}
