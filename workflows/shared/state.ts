import { workflowInfo } from '@temporalio/workflow';
import type { VerificationMode } from '../../src/domain/callback/signature';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

/** The facts that every kind of resource has. */
export interface CommonFacts {
  account_id: string;
  livemode: boolean;
  connector: string;
  request_id: string;
}

/** The memory of a resource within one run. MongoDB holds its projection. */
export interface WorkflowState<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
> {
  readonly id: string;
  readonly facts: Facts;
  status: Status;
  /** Moves made so far; every write is conditional on it. */
  version: number;
  /** The reason why it needs an operator; null when it doesn't. */
  attention: Attention | null;
  /** Time of its latest attention reason, in ms since the epoch. */
  attentionAt: number;
  /** When the state was reached, in ms since the epoch. */
  enteredAt: number;
  /** Operators were notified that it is overdue in this state. */
  isOverdueReported: boolean;
  /** In ms since the epoch; then operators are notified again. */
  snoozedUntil: number | undefined;
  /** `callback_id`s that were applied in earlier runs: a repeat is not applied again. */
  readonly appliedIds: ReadonlySet<string>;
  /** Verified callbacks of this run, by `callback_id`: each counts once. */
  readonly verifiedCallbacks: Map<string, object>;
  /** Whether a callback without a signature counts. */
  readonly verification: VerificationMode;
  /** Lines for operators about each attempt: newest last, bounded. */
  activityLog: string[];
  /** The search attributes as they are now. */
  labels: UpsertedLabels;
}

export interface UpsertedLabels {
  status: string | null;
  attention: string | null;
  /** Minor units; undefined: as the start said. */
  amount?: number | undefined;
  /** Formatted amount of an asset; undefined: as at the start. */
  assetAmount?: string | undefined;
}

/** A resource as it was opened or loaded. */
export interface ResourceSnapshot<Status extends string, Attention extends string, Facts> {
  facts: Facts;
  status: Status;
  version: number;
  attention: Attention | null;
  /** `callback_id`s that moved it; none when it was just opened. */
  applied?: string[];
  verification: VerificationMode;
  /** Time of its latest attention reason, in ms since the epoch. */
  attention_at?: number;
}

/**
 * The labels that a run begins with.
 * @param resumed they may say anything, and are brought up to date
 */
export function startLabels(resumed: boolean): UpsertedLabels {
  const status = workflowInfo().typedSearchAttributes.get(SEARCH_KEYS.status) ?? null;
  return { status: resumed ? null : status, attention: null };
}

/** @param labels what the search attributes say; null where they may say anything */
export function initialState<
  Status extends string,
  Attention extends string,
  Facts extends CommonFacts,
>(
  id: string,
  {
    facts,
    status,
    version,
    attention,
    applied = [],
    verification,
    attention_at = 0,
  }: ResourceSnapshot<Status, Attention, Facts>,
  labels: UpsertedLabels,
): WorkflowState<Status, Attention, Facts> {
  return {
    id,
    facts,
    status,
    version,
    attention,
    attentionAt: attention_at,
    enteredAt: Date.now(),
    isOverdueReported: false,
    snoozedUntil: undefined,
    appliedIds: new Set(applied),
    verifiedCallbacks: new Map(),
    verification: verification,
    activityLog: [],
    labels,
  };
}

const ACTIVITY_LOG_LINES_MAX = 20;

export function note({ activityLog }: { activityLog: string[] }, line: string): void {
  activityLog.push(`${new Date().toISOString()} ${line}`);
  if (activityLog.length > ACTIVITY_LOG_LINES_MAX) activityLog.shift();
}
