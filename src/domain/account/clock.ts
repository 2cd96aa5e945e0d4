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
  const dues = stops.flatMap(({ due_at_ms }) => (due_at_ms === null ? [] : [due_at_ms]));
  return {
    due_at_ms: dues.length === 0 ? null : Math.min(...dues),
    waiting: stops.flatMap(({ waiting }) => waiting),
  };
}

export function clockWorkflowId(account_id: string): string {
  return `clock:${account_id}`;
}
