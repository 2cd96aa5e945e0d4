/** A change takes effect in all processes within this time. */
export const CACHE_MS = 2_000;
const DOCUMENTS_MAX = 10_000;

/** After it, no process goes by what was stored before. */
export async function waitForCaches(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, CACHE_MS));
}

/** @param maxAgeMs 0 caches nothing */
export function createCache<T>(maxAgeMs: number, now: () => number = () => performance.now()) {
  const rows = new Map<string, { document: T; readAt: number }>();
  const refresh = async <R extends T | null>(key: string, read: () => Promise<R>): Promise<R> => {
    // Before the read, during which the document may change.
    const readAt = now();
    const document = await read();
    rows.delete(key);
    if (document === null || maxAgeMs === 0) return document;
    const [oldest] = rows.keys();
    if (rows.size >= DOCUMENTS_MAX && oldest !== undefined) rows.delete(oldest);
    rows.set(key, { document, readAt });
    return document;
  };
  return {
    /** Never caches an absence. */
    get: async <R extends T | null>(key: string, read: () => Promise<R>): Promise<T | R> => {
      const row = rows.get(key);
      if (row !== undefined && now() - row.readAt < maxAgeMs) return row.document;
      return await refresh(key, read);
    },
    refresh,
  };
}

/** Reads at most once within an age, for all callers together. @param maxAgeMs 0 caches nothing */
export function createCachedRead<T>(
  maxAgeMs: number,
  read: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let last: { readAt: number; value: Promise<T> } | undefined;
  return async () => {
    // Before the read, during which the documents may change.
    const readAt = now();
    if (last !== undefined && readAt - last.readAt < maxAgeMs) return await last.value;
    const current = { readAt, value: read() };
    last = current;
    try {
      return await current.value;
    } catch (error) {
      if (last === current) last = undefined;
      throw error;
    }
  };
}
