/**
 * Time of an account. In the sandbox a merchant can move it forward, to see what takes days; live
 * time is the real one.
 * @see docs/api.md#sandbox-clock
 */
export type AccountTime = { livemode: true; offset_ms: 0 } | { livemode: false; offset_ms: number };

/** Target of an advance. */
export interface ClockTarget {
  /** Time ahead of the real one, in ms. */
  offset_ms: number;
  /** Requested account time, ISO 8601, ms. */
  at: string;
}

/** Clock of a sandbox account, as its document stores it; absent before it was first moved. */
export interface StoredClock {
  /** Time ahead of the real one, in ms; it never falls. */
  offset_ms: number;
  /** Present while it advances. */
  target?: ClockTarget;
  /** Ids of resources and events that did not finish what was due. */
  behind?: string[];
}

/** Input of the update `advance_clock` of the workflows. */
export type ClockAdvance = Pick<ClockTarget, 'offset_ms'>;

/** Findings of the clock at one stop. */
export interface ClockStop {
  /** Account time of what is due next, in ms since the epoch; null when nothing is. */
  due_at_ms: number | null;
  /** Ids of what is due already, and not done. */
  waiting: string[];
}

export interface ClockStart {
  account_id: string;
  /** Sandbox bank, whose next steps follow the clock. */
  connector: string;
}

const DAY_MS = 86_400_000;

/** All that an account can be moved forward, in ms. */
export const CLOCK_MS_MAX = 1_100 * DAY_MS;

const REAL_TIME: AccountTime = { livemode: true, offset_ms: 0 };

/** Reads the time of an account in one environment: in live it is always the real one. */
export function readAccountTime(livemode: boolean, stored: StoredClock | undefined): AccountTime {
  return livemode ? REAL_TIME : { livemode: false, offset_ms: stored?.offset_ms ?? 0 };
}

/** Returns the account's time at a real one. */
export function toAccountTime({ offset_ms }: AccountTime, at: Date): Date {
  return new Date(at.getTime() + offset_ms);
}

/** Joins what the parts of a stop have found. */
export function joinStops(stops: readonly ClockStop[]): ClockStop {
  const dues = stops.flatMap(({ due_at_ms }) => (due_at_ms === null ? [] : [due_at_ms]));
  return {
    due_at_ms: dues.length === 0 ? null : Math.min(...dues),
    waiting: stops.flatMap(({ waiting }) => waiting),
  };
}

export function clockWorkflowId(account_id: string): string {
  return `clock:${account_id}`;
}
