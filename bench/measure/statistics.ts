export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

export type Counts = Record<string, number>;

/**
 * Computes percentiles by nearest rank, so that each is a measured value.
 * @throws RangeError on an empty sample.
 */
export function percentiles(sample: readonly number[]): Percentiles {
  const sorted = [...sample].sort((a, b) => a - b);
  return { p50: rank(sorted, 0.5), p95: rank(sorted, 0.95), p99: rank(sorted, 0.99) };
}

export function median(sample: readonly number[]): number {
  const sorted = [...sample].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = at(sorted, Math.floor(middle));
  return Number.isInteger(middle) ? (at(sorted, middle - 1) + upper) / 2 : upper;
}

export function mean(sample: readonly number[]): number {
  if (sample.length === 0) throw new RangeError('An empty sample.');
  return sample.reduce((sum, value) => sum + value, 0) / sample.length;
}

export function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function meanCounts(samples: readonly Counts[]): Counts {
  const names = [...new Set(samples.flatMap((counts) => Object.keys(counts)))];
  return Object.fromEntries(
    names.map((name) => [name, mean(samples.map((counts) => counts[name] ?? 0))]),
  );
}

function rank(sorted: readonly number[], share: number): number {
  return at(sorted, Math.max(0, Math.ceil(sorted.length * share) - 1));
}

function at(sorted: readonly number[], index: number): number {
  const value = sorted[index];
  if (value === undefined) throw new RangeError('An empty sample.');
  return value;
}
