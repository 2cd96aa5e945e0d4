import { workflowInfo } from '@temporalio/workflow';
import type { AccountTime } from '../../src/domain/account/clock';
import type { MissedCallback, VerificationMode } from '../../src/domain/callback/signature';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';
import type { SentHeld } from '../../src/domain/sent-held';
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
  /** Number of transitions; every write is conditional on it. */
  version: number;
  /** Reason why it needs an operator. */
  attention: Attention | null;
  /** Time of its latest attention reason, in ms since the epoch. */
  attentionAt: number;
  /** Reasons that an operator acknowledged, and that have not come again. */
  readonly acknowledged: Set<Attention>;
  /** When the state was reached, in ms since the epoch. */
  enteredAt: number;
  /** Whether operators were notified that it is overdue. */
  isOverdueReported: boolean;
  /** In ms since the epoch; then operators are notified again. */
  snoozedUntil: number | undefined;
  /** `callback_id`s that earlier runs have applied. */
  readonly appliedIds: ReadonlySet<string>;
  /** Verified callbacks of this run, each applied once. */
  readonly verifiedCallbacks: Map<string, object>;
  /** Whether a callback without a signature is applied. */
  readonly verification: VerificationMode;
  /** Lines for operators about each attempt: newest last, bounded. */
  activityLog: string[];
  labels: UpsertedLabels;
  readonly clock: AccountClock;
}

export interface UpsertedLabels {
  status: string | null;
  attention: string | null;
  /** Minor units; undefined: as at the start. */
  amount?: number | undefined;
  /** Formatted amount of an asset; undefined: as at the start. */
  assetAmount?: string | undefined;
}

export interface ResourceSnapshot<Status extends string, Attention extends string, Facts> {
  facts: Facts;
  status: Status;
  version: number;
  attention: Attention | null;
  /** `callback_id`s that were applied; none when it was just opened. */
  applied?: string[];
  verification: VerificationMode;
  /** Time of its latest attention reason, in ms since the epoch. */
  attention_at?: number;
  /** Reasons that an operator acknowledged. */
  acknowledged?: Attention[];
  missed?: MissedCallback[];
  /** End of a snooze in this state, in ms since the epoch. */
  snoozed_until?: number;
  /** Account time, where a sandbox's clock was moved. */
  clock?: AccountTime;
  /** Money that the bank sent otherwise than it was instructed. */
  sent_held?: SentHeld[];
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
  {
    facts,
    status,
    version,
    attention,
    applied = [],
    verification,
    attention_at = 0,
    acknowledged = [],
    snoozed_until,
    clock: storedTime,
  }: ResourceSnapshot<Status, Attention, Facts>,
  labels: UpsertedLabels,
  clock: AccountClock,
): WorkflowState<Status, Attention, Facts> {
  syncClock(clock, storedTime);
  return {
    id,
    facts,
    status,
    version,
    attention,
    attentionAt: attention_at,
    acknowledged: new Set(acknowledged.filter((reason) => reason !== attention)),
    enteredAt: now({ clock }),
    isOverdueReported: false,
    snoozedUntil: snoozed_until,
    appliedIds: new Set(applied),
    verifiedCallbacks: new Map(),
    verification: verification,
    activityLog: [],
    labels,
    clock,
  };
}

/** Whether an operator was notified of this reason and nothing has cleared it since. */
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
