import type { Finding } from './finding';
import { findingOf } from './finding';
import type { Rebuilder, Rebuilt } from './rebuilder';
import type { Difference } from './walk';

/**
 * Rebuilds all that can be, in the order given, and again as long as one more succeeds: one may need
 * what the failure or settlement of another gives to the balance. Money that went wrong is booked
 * last, since a disputed payment takes no refunds.
 * @returns a finding for each, in the same order
 */
export async function rebuildAll(
  rebuilder: Rebuilder,
  differences: readonly Difference[],
  progress: (line: string) => void,
): Promise<Finding[]> {
  const results = new Map<Difference, Rebuilt>();
  let left = [...differences];
  for (let before = left.length + 1; left.length > 0 && left.length < before; ) {
    before = left.length;
    for (const difference of left) {
      const { resource, id } = difference;
      const result = await rebuilder.rebuild(resource, id, 'life');
      results.set(difference, result);
      progress(`${resource} ${id}: ${result.outcome}`);
    }
    left = left.filter((difference) => results.get(difference)?.outcome !== 'rebuilt');
  }
  for (const difference of differences) {
    if (difference.resource !== 'payment' || left.includes(difference)) continue;
    const booked = await rebuilder.rebuild('payment', difference.id, 'bookings');
    if (booked.outcome !== 'rebuilt') results.set(difference, booked);
  }
  return differences.map((difference) => withResult(difference, results.get(difference)));
}

function withResult(difference: Difference, result: Rebuilt | undefined): Finding {
  const finding = findingOf(difference);
  if (result === undefined) return finding;
  const { outcome, reason, key_lost } = result;
  return {
    ...finding,
    kind: outcome === 'short' ? 'short' : finding.kind,
    done: outcome === 'rebuilt',
    ...(reason === undefined ? {} : { reason }),
    ...(key_lost === undefined ? {} : { key_lost }),
  };
}
