/** Document with an id of its own. */
export interface Named {
  _id: unknown;
}

/** Memory of one collection's documents. */
export interface Memory<T extends Named> {
  /** Gives what is remembered under `key`, or reads it; what is not there is never remembered. */
  get: (key: string, read: () => Promise<T | null>) => Promise<T | null>;
}

/** Age at which a document is read again in any case. */
export const AGE_MS_MAX = 10_000;
const DOCUMENTS_MAX = 10_000;

/** Reads each time. */
export function noMemory<T extends Named>(): Memory<T> {
  return { get: (_key, read) => read() };
}

/**
 * Remembers documents until they are forgotten.
 * @param isCurrent whether all changes made so far are known, so that what was read may be believed
 */
export function createMemory<T extends Named>({
  isCurrent,
  now,
}: {
  isCurrent: () => boolean;
  now: () => number;
}): Memory<T> & { forget: (id?: string) => void } {
  const kept = new Map<string, { document: T; readAt: number }>();
  /** Counts what was forgotten: a document that was being read meanwhile may be the older one. */
  let changes = 0;
  return {
    get: async (key, read) => {
      const known = kept.get(key);
      const wasCurrent = isCurrent();
      const readAt = now();
      if (known !== undefined && wasCurrent && readAt - known.readAt < AGE_MS_MAX) {
        return known.document;
      }
      const before = changes;
      const document = await read();
      kept.delete(key);
      if (document === null || !wasCurrent || !isCurrent() || changes !== before) return document;
      const [oldest] = kept.keys();
      if (kept.size >= DOCUMENTS_MAX && oldest !== undefined) kept.delete(oldest);
      kept.set(key, { document, readAt });
      return document;
    },
    /** Forgets one document by its id, or all of them. */
    forget: (id) => {
      changes += 1;
      for (const [key, { document }] of kept) {
        if (id === undefined || String(document._id) === id) kept.delete(key);
      }
    },
  };
}
