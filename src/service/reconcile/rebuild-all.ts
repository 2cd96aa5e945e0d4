import { buildFinding, type Finding } from './finding';
import type { Rebuilder, RebuildResult } from './rebuilder';
import type { Difference } from './walk';

/**
 * Rebuilds the resources, and repeats as long as one more succeeds: one may need the balance that
 * another one releases or credits. Late funds and disputes are booked last, since a disputed
 * payment accepts no refunds.
 * @returns a finding for each, in the same order
 */
export async function rebuildAll(
  rebuilder: Rebuilder,
  differences: readonly Difference[],
  progress: (line: string) => void,
): Promise<Finding[]> {
  const results = new Map<Difference, RebuildResult>();
  let remaining = [...differences];
  for (let before = remaining.length + 1; remaining.length > 0 && remaining.length < before; ) {
    before = remaining.length;
    for (const difference of remaining) {
      const { resource, id } = difference;
      const result = await rebuilder.rebuild(resource, id, 'life');
      results.set(difference, result);
      progress(`${resource} ${id}: ${result.outcome}`);
    }
    remaining = remaining.filter((difference) => results.get(difference)?.outcome !== 'rebuilt');
  }
  for (const difference of differences) {
    if (difference.resource !== 'payment' || remaining.includes(difference)) continue;
    const bookingResult = await rebuilder.rebuild('payment', difference.id, 'bookings');
    if (bookingResult.outcome !== 'rebuilt') results.set(difference, bookingResult);
  }
  return differences.map((difference) => withResult(difference, results.get(difference)));
}

function withResult(difference: Difference, result: RebuildResult | undefined): Finding {
  const finding = buildFinding(difference);
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
