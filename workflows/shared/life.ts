import { ApplicationFailure } from '@temporalio/workflow';

/** What every lifecycle remembers within one run. MongoDB holds its projection. */
export interface Life<Status extends string, Attention extends string, Facts> {
  facts: Facts | undefined;
  status: Status;
  version: number;
  /** The document is written; the API may answer. */
  stored: boolean;
  /** Callbacks that were taken in, by `callback_id`. */
  seen: Set<string>;
  attention: Attention | null;
  /** When the state was reached, in ms since the epoch. */
  since: number;
  snoozedUntil: number | undefined;
  /** Minor units, where the start did not know them. */
  amount?: number;
  /** What was tried, for operators: newest last, bounded. */
  journal: string[];
  /** What the search attributes say now. */
  shown: Shown;
}

export interface Shown {
  status: string | null;
  attention: string | null;
  /** Minor units; undefined: as the start said. */
  amount?: number | undefined;
}

/** @param resumed the search attributes may say anything: they are brought up to date */
export function newLife<Status extends string, Attention extends string, Facts>(
  status: Status,
  resumed: boolean,
): Life<Status, Attention, Facts> {
  return {
    facts: undefined,
    status,
    version: 0,
    stored: false,
    seen: new Set(),
    attention: null,
    since: Date.now(),
    snoozedUntil: undefined,
    journal: [],
    shown: { status: resumed ? null : status, attention: null },
  };
}

const JOURNAL_LINES_MAX = 20;

export function note({ journal }: { journal: string[] }, line: string): void {
  journal.push(`${new Date().toISOString()} ${line}`);
  if (journal.length > JOURNAL_LINES_MAX) journal.shift();
}

/** @throws ApplicationFailure before the resource is stored or loaded: a fault of ours. */
export function factsOf<Facts>({ facts }: { facts: Facts | undefined }): Facts {
  if (facts === undefined) throw ApplicationFailure.nonRetryable('The resource is not loaded.');
  return facts;
}
