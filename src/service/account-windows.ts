/** Creates that any account may have in flight. */
const LEAST = 4;
/** Creates that are in flight fail together, which counts once. */
const SHRINK_EVERY_MS = 1_000;

/**
 * Limits the creates in flight of an account as TCP does with packets: half as many after a
 * timeout, one more after a success. Otherwise one merchant fills a queue in which nothing succeeds
 * any more.
 * @see docs/operations.md#overload
 */
export function createWindows(most: number, now = () => performance.now()) {
  /** Accounts below the most. */
  const windows = new Map<string, { size: number; shrunkAt: number }>();
  return {
    isOpen: (account_id: string, inFlight: number): boolean =>
      inFlight < (windows.get(account_id)?.size ?? most),
    /** @param inFlight creates of the account when this one ended */
    shrink: (account_id: string, inFlight: number): void => {
      const { size, shrunkAt } = windows.get(account_id) ?? { size: most, shrunkAt: -Infinity };
      if (now() - shrunkAt < SHRINK_EVERY_MS) return;
      const half = Math.floor(Math.min(size, inFlight) / 2);
      windows.set(account_id, { size: Math.max(LEAST, half), shrunkAt: now() });
    },
    grow: (account_id: string): void => {
      const window = windows.get(account_id);
      if (window === undefined) return;
      window.size += 1;
      if (window.size >= most) windows.delete(account_id);
    },
  };
}
