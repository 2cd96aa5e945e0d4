/**
 * Waits for work, but not beyond the signal. What the work holds is for the caller to end.
 * @throws the reason of the signal
 */
export async function orAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return await work;
  const over = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { signal: over.signal });
  });
  return await Promise.race([work, aborted]).finally(() => over.abort());
}
