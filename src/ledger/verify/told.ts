import type { Difference } from './compare';

/** Number of differences that are listed; all are counted. */
const DIFFERENCES_MAX = 100;
/** Number of differences that are known again; one may be met from two sides. */
const KNOWN_MAX = 10_000;
const PROGRESS_EVERY_MS = 5_000;

/** Keeps what a verification finds, and tells how far it is now and then. */
export function createTold(progress: (line: string) => void = () => {}) {
  const differences: Difference[] = [];
  const known = new Set<string>();
  let total = 0;
  const looked = { postings: 0, resources: 0 };
  let toldAt = performance.now();
  return {
    tell: (found: readonly Difference[]): void => {
      for (const each of found) {
        const name = JSON.stringify(each);
        if (known.has(name)) continue;
        if (known.size < KNOWN_MAX) known.add(name);
        total += 1;
        if (differences.length < DIFFERENCES_MAX) differences.push(each);
      }
    },
    looked: ({ postings = 0, resources = 0 }: Partial<typeof looked>): void => {
      looked.postings += postings;
      looked.resources += resources;
      if (performance.now() - toldAt < PROGRESS_EVERY_MS) return;
      toldAt = performance.now();
      progress(
        `${looked.postings} postings and ${looked.resources} resources read, ` +
          `${total} ${total === 1 ? 'difference' : 'differences'} so far`,
      );
    },
    result: () => ({ differences, differences_total: total }),
  };
}
