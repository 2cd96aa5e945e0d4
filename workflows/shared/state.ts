import { workflowInfo } from '@temporalio/workflow';
import type { AccountTime } from '../../src/domain/account/clock';
import type { MissedCallback, VerificationMode } from '../../src/domain/callback/signature';
import type { Movement } from '../../src/domain/movement/movement';
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

export interface ResourceSnapshot<Status extends string, Attention extends string, Facts> {
  facts: Facts;
  status: Status;
  version: number;
  transition: number;
  attention: Attention | null;
  applied?: string[];
  verification: VerificationMode;
  /** Ms since the epoch. */
  attention_at?: number;
  acknowledged?: Attention[];
  missed?: MissedCallback[];
  /** Ms since the epoch. */
  snoozed_until?: number;
  /** Absent until a sandbox's clock advances. */
  clock?: AccountTime;
  movements?: Movement[];
  bank_reference?: string;
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
    transition,
    attention,
    applied = [],
    verification,
    attention_at = 0,
    acknowledged = [],
    snoozed_until,
    clock: storedTime,
    movements = [],
    bank_reference: storedReference,
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
    transition,
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
    movements,
    storedReference,
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
