/** Less than the window of a limit, 10 seconds. */
const WINDOW_MS = 9_000;
/** No test is made again after this time. */
const PATIENCE_MS = 30_000;

/** Makes a test again whose calls did not fall into one window of a limit. */
export function inOneWindow(work: () => Promise<void>): () => Promise<void> {
  return async () => {
    const giveUpAt = Date.now() + PATIENCE_MS;
    for (;;) {
      const begun = Date.now();
      try {
        return await work();
      } catch (error) {
        const end = Date.now();
        if (end > giveUpAt || end - begun < WINDOW_MS) throw error;
      }
    }
  };
}

/** Makes a test again during which the day has ended (UTC). */
export function inOneDay(work: () => Promise<void>): () => Promise<void> {
  const readDay = () => new Date().toISOString().slice(0, 10);
  return async () => {
    const day = readDay();
    await work().catch((error: unknown) => {
      if (readDay() === day) throw error;
      return work();
    });
  };
}
