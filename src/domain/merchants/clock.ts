import type { CallbackResource } from '../banks/callback';

/** Real on live; a merchant can advance the sandbox's. @see docs/api.md#sandbox-clock */
export type AccountTime = { livemode: true; offset_ms: 0 } | { livemode: false; offset_ms: number };

export interface ClockTarget {
  /** ms ahead of the real time. */
  offset_ms: number;
  /** ISO 8601, ms. */
  at: string;
}

export interface StoredClock {
  /** ms ahead of the real time; never falls. */
  offset_ms: number;
  /** Present while it advances. */
  target?: ClockTarget;
  /** Resources and events that did not finish what was due. */
  behind?: string[];
}

/** Input of the workflows' update `advance_clock`. */
export type ClockAdvance = Pick<ClockTarget, 'offset_ms'>;

export interface ClockStop {
  /** Account time, ms since the epoch; null when nothing is due. */
  due_at_ms: number | null;
  /** Ids of what is due already, and not done. */
  waiting: string[];
}

/** Workflow to ask, and how often it has answered at this stop: it may have got something new. */
export type ClockAsk = [workflow_id: string, answers: number];

/** Next due time before the end of the advance, account time. */
export type ResourceDue = [workflow_id: string, due_at_ms: number];

export interface ClockPlace {
  kind: CallbackResource;
  after: string;
}

/** Answers of workflows. */
export interface ResourceStop {
  dues: ResourceDue[];
  /** Those that did not answer in time. */
  silent: string[];
  /** Start of the next page; null after the last one. */
  place: ClockPlace | null;
}

export interface ClockStart {
  account_id: string;
  /** Sandbox bank, which follows the clock. */
  connector: string;
}

const DAY_MS = 86_400_000;

/** ms ahead of the real time. */
export const CLOCK_MS_MAX = 1_100 * DAY_MS;

const REAL_TIME: AccountTime = { livemode: true, offset_ms: 0 };

export function readAccountTime(livemode: boolean, stored: StoredClock | undefined): AccountTime {
  return livemode ? REAL_TIME : { livemode: false, offset_ms: stored?.offset_ms ?? 0 };
}

export function toAccountTime({ offset_ms }: AccountTime, at: Date): Date {
  return new Date(at.getTime() + offset_ms);
}

export function joinStops(stops: readonly ClockStop[]): ClockStop {
  const waiting = stops.flatMap((stop) => stop.waiting);
  return { due_at_ms: findEarliest(stops.map(({ due_at_ms }) => due_at_ms)), waiting };
}

/** As late as a timer may fire: what is due within it is done at one stop. */
const TOGETHER_MS = 1_000;

/**
 * Finds the next time at which the clock stops, account time.
 * @param dues of resources
 * @param others next ones of all else, each of which is a stop of its own
 */
export function findStop(dues: readonly number[], others: readonly (number | null)[]) {
  const other = findEarliest(others);
  const first = findEarliest([other, ...dues]);
  if (first === null) return null;
  const last = Math.min(first + TOGETHER_MS, other ?? Number.POSITIVE_INFINITY);
  return dues.reduce((latest, at) => (at <= last && at > latest ? at : latest), first);
}

function findEarliest(times: readonly (number | null)[]): number | null {
  return times.reduce(
    (first, at) => (first === null || (at !== null && at < first) ? at : first),
    null,
  );
}

export function clockWorkflowId(account_id: string): string {
  return `clock:${account_id}`;
}
