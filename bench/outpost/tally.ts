import { type Percentiles, percentiles } from '../measure/statistics';

/** Times of arrival in ms by event, each in order. */
export type Receipts = ReadonlyMap<string, readonly number[]>;

export interface Tally {
  events: number;
  /** Events that never arrived. */
  lost: number;
  /** Events that arrived more than once. */
  doubled: number;
  /** First arrival of the event that arrived last, in ms; null if none did. */
  lastAt: number | null;
}

/** Counts accepted events that never arrived, or more than once. */
export function tally(ids: readonly string[], receipts: Receipts): Tally {
  const arrivals = ids.map((id) => receipts.get(id) ?? []);
  const firsts = arrivals.flatMap(([first]) => (first === undefined ? [] : [first]));
  return {
    events: ids.length,
    lost: ids.length - firsts.length,
    doubled: arrivals.filter(({ length }) => length > 1).length,
    lastAt: firsts.reduce<number | null>((last, at) => Math.max(last ?? at, at), null),
  };
}

/**
 * Computes the times from the start of each publish to the first arrival.
 * @throws Error if an event did not arrive
 */
export function measureDelays(starts: ReadonlyMap<string, number>, receipts: Receipts): number[] {
  return [...starts].map(([id, began]) => {
    const first = receipts.get(id)?.[0];
    if (first === undefined) throw new Error(`Event ${id} did not arrive.`);
    return first - began;
  });
}

/** Joins the delays of all rounds. */
export function joinDelays(rounds: readonly (readonly number[])[]): Percentiles {
  return percentiles(rounds.flat());
}
