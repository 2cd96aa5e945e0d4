/** Maximum age: the time until a change takes effect in all processes. */
export const CACHE_MS = 2_000;
const DOCUMENTS_MAX = 10_000;

/** @param maxAgeMs 0 caches nothing */
export function createCache<T>(maxAgeMs: number, now: () => number = () => performance.now()) {
  const rows = new Map<string, { document: T; readAt: number }>();
  const refresh = async <R extends T | null>(key: string, read: () => Promise<R>): Promise<R> => {
    // The document may change while it is read.
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
    /** Returns the cached document, or reads it; an absence is never cached. */
    get: async <R extends T | null>(key: string, read: () => Promise<R>): Promise<T | R> => {
      const row = rows.get(key);
      if (row !== undefined && now() - row.readAt < maxAgeMs) return row.document;
      return await refresh(key, read);
    },
    refresh,
  };
}
