import type { SearchAttributeUpdatePair } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { LoadedState } from '../../activities/shared/record-table';
import type { CallbackResource, VerificationMode } from '../../src/domain/banks/callback';
import type { Movement } from '../../src/domain/banks/movement';
import type { RuleViolation } from '../../src/domain/errors';
import { describeRemedy, findRemedy } from '../../src/domain/operators/remedies';
import { quoteMarkdown } from '../../src/domain/printable';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';
import { type AccountClock, now, syncClock } from './clock';

export interface CommonFacts {
  account_id: string;
  livemode: boolean;
  connector: string;
  request_id: string;
}

/** Memory of a resource within one run. MongoDB holds its projection. */
export interface WorkflowState<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
> {
  readonly id: string;
  readonly facts: Facts;
  status: Status;
  /** Number of writes, each of which is conditional on it. */
  version: number;
  /** Number of transitions. */
  transition: number;
  attention: Attention | null;
  /** Ms since the epoch. */
  attentionAt: number;
  /** Acknowledged reasons that have not come again. */
  readonly acknowledged: Set<Attention>;
  /** Ms since the epoch. */
  enteredAt: number;
  isOverdueReported: boolean;
  /** Ms since the epoch. */
  snoozedUntil: number | undefined;
  /** Applied by earlier runs. */
  readonly appliedIds: ReadonlySet<string>;
  /** Verified callbacks of this run, each applied once. */
  readonly verifiedCallbacks: Map<string, object>;
  readonly verification: VerificationMode;
  /** Newest last, bounded. */
  activityLog: string[];
  labels: UpsertedLabels;
  readonly clock: AccountClock;
  /** Money that banks moved, as far as this run knows; the oldest first. */
  movements: readonly Movement[];
  /** The bank's, once it is stored. */
  storedReference: string | undefined;
}

export interface UpsertedLabels {
  status: string | null;
  attention: string | null;
  /** Undefined: as at the start. */
  amount?: number | undefined;
  /** Undefined: as at the start. */
  assetAmount?: string | undefined;
}

export interface ResourceSnapshot<Status extends string, Attention extends string, Facts>
  extends Omit<LoadedState<Status, Attention>, 'applied'> {
  facts: Facts;
  applied?: string[];
  movements?: Movement[];
}

/** @param resumed the search attributes may have any value */
export function startLabels(resumed: boolean): UpsertedLabels {
  const status = workflowInfo().typedSearchAttributes.get(SEARCH_KEYS.status) ?? null;
  return { status: resumed ? null : status, attention: null };
}

export function initialState<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
>(
  id: string,
  snapshot: ResourceSnapshot<Status, Attention, Facts>,
  labels: UpsertedLabels,
  clock: AccountClock,
): WorkflowState<Status, Attention, Facts> {
  const { facts, status, version, transition, attention, verification } = snapshot;
  const { acknowledged = [], applied, movements = [] } = snapshot;
  syncClock(clock, snapshot.clock);
  return {
    ...{ id, facts, status, version, transition, attention, verification },
    attentionAt: snapshot.attention_at ?? 0,
    acknowledged: new Set(acknowledged.filter((reason) => reason !== attention)),
    enteredAt: now({ clock }),
    isOverdueReported: false,
    snoozedUntil: snapshot.snoozed_until,
    appliedIds: new Set(applied),
    verifiedCallbacks: new Map(),
    activityLog: [],
    ...{ labels, clock, movements },
    storedReference: snapshot.bank_reference,
  };
}

export function isReported<Attention extends string>(
  {
    attention,
    acknowledged,
  }: Pick<WorkflowState<string, Attention, CommonFacts>, 'attention' | 'acknowledged'>,
  reason: Attention,
): boolean {
  return attention === reason || acknowledged.has(reason);
}

const ACTIVITY_LOG_LINES_MAX = 20;

export function note({ activityLog }: { activityLog: string[] }, line: string): void {
  activityLog.push(`${new Date().toISOString()} ${line}`);
  if (activityLog.length > ACTIVITY_LOG_LINES_MAX) activityLog.shift();
}

export interface Waiting {
  what: string;
  updates: string;
}

export const FINAL: Waiting = { what: 'nothing: final', updates: 'none' };

/** @param until end of a clause */
export function updateDetails<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
>(
  state: WorkflowState<Status, Attention, Facts>,
  {
    noun,
    waitingFor,
    until,
  }: { noun: CallbackResource; waitingFor: Record<Status, Waiting>; until: string },
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
    const remedy = findRemedy(noun, attention);
    const text = remedy === undefined ? '' : `${describeRemedy(remedy)} `;
    lines.push('', `⚠ **${attention}**: ${text}Then send \`acknowledge\`, unless it clears.`);
  }
  // Newest first: the UI's frame cuts off the end.
  const activityLog = [...state.activityLog].reverse();
  if (activityLog.length > 0) {
    lines.push('', ...activityLog.map((line) => `- ${quoteMarkdown(line)}`));
  }
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
