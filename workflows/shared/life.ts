import { workflowInfo } from '@temporalio/workflow';
import type { SenderCheck } from '../../src/domain/callback-mac';
import { SEARCH_KEYS } from '../../src/domain/search-attributes';

/** The facts that every kind of resource has. */
export interface CommonFacts {
  account_id: string;
  livemode: boolean;
  connector: string;
  request_id: string;
}

/** The memory of a resource within one run. MongoDB holds its projection. */
export interface Life<Status extends string, Attention extends string, Facts extends CommonFacts> {
  readonly id: string;
  readonly facts: Facts;
  status: Status;
  /** Moves made so far; every write is conditional on it. */
  version: number;
  /** The reason why it needs a person; null when it doesn't. */
  attention: Attention | null;
  /** Time of its latest mark, in ms since the epoch. */
  markedAt: number;
  /** When the state was reached, in ms since the epoch. */
  since: number;
  /** Operators know that it is overdue in this state. */
  overdueTold: boolean;
  /** In ms since the epoch; past it operators are told again. */
  snoozedUntil: number | undefined;
  /** `callback_id`s that moved it in earlier runs: repeated, each is known. */
  readonly applied: ReadonlySet<string>;
  /** Callbacks of this run that count, by `callback_id`: each counts once. */
  readonly counted: Map<string, object>;
  /** Extent to which senders are looked at; undefined in runs from before: not at all. */
  readonly senders: SenderCheck | undefined;
  /** Lines for operators on all that was tried: newest last, bounded. */
  journal: string[];
  /** The search attributes as they are now. */
  labels: UpsertedLabels;
}

export interface UpsertedLabels {
  status: string | null;
  attention: string | null;
  /** Minor units; undefined: as the start said. */
  amount?: number | undefined;
  /** Amount of a coin for people; undefined: as the start said. */
  assetAmount?: string | undefined;
}

/** A resource as it was opened or loaded. */
export interface Loaded<Status extends string, Attention extends string, Facts> {
  facts: Facts;
  status: Status;
  version: number;
  attention: Attention | null;
  /** `callback_id`s that moved it; none when it was just opened. */
  applied?: string[];
  senders?: SenderCheck;
  /** Time of its latest mark, in ms since the epoch. */
  marked_at?: number;
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
export function newLife<Status extends string, Attention extends string, Facts extends CommonFacts>(
  id: string,
  {
    facts,
    status,
    version,
    attention,
    applied = [],
    senders,
    marked_at = 0,
  }: Loaded<Status, Attention, Facts>,
  labels: UpsertedLabels,
): Life<Status, Attention, Facts> {
  return {
    id,
    facts,
    status,
    version,
    attention,
    markedAt: marked_at,
    since: Date.now(),
    overdueTold: false,
    snoozedUntil: undefined,
    applied: new Set(applied),
    counted: new Map(),
    senders,
    journal: [],
    labels,
  };
}

const JOURNAL_LINES_MAX = 20;

export function note({ journal }: { journal: string[] }, line: string): void {
  journal.push(`${new Date().toISOString()} ${line}`);
  if (journal.length > JOURNAL_LINES_MAX) journal.shift();
}
