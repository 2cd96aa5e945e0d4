import type { Difference } from './compare';

/** Number of differences that are listed; all are counted. */
const DIFFERENCES_MAX = 100;
/** Number of differences that are known again; one may be met from two sides. */
const SEEN_MAX = 10_000;
const PROGRESS_EVERY_MS = 5_000;

/** Keeps what a verification finds, and tells how far it is now and then. */
export function createReport(progress: (line: string) => void = () => {}) {
  const differences: Difference[] = [];
  const seen = new Set<string>();
  let total = 0;
  const counts = { postings: 0, resources: 0 };
  let reportedAt = performance.now();
  return {
    add: (findings: readonly Difference[]): void => {
      for (const each of findings) {
        const name = JSON.stringify(each);
        if (seen.has(name)) continue;
        if (seen.size < SEEN_MAX) seen.add(name);
        total += 1;
        if (differences.length < DIFFERENCES_MAX) differences.push(each);
      }
    },
    countRead: ({ postings = 0, resources = 0 }: Partial<typeof counts>): void => {
      counts.postings += postings;
      counts.resources += resources;
      if (performance.now() - reportedAt < PROGRESS_EVERY_MS) return;
      reportedAt = performance.now();
      progress(
        `${counts.postings} postings and ${counts.resources} resources read, ` +
          `${total} ${total === 1 ? 'difference' : 'differences'} so far`,
      );
    },
    result: () => ({ differences, differences_total: total }),
  };
}
