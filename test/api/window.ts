/** Less than the window of a limit, 10 seconds. */
const WINDOW_MS = 9_000;
/** Ends before the time of a test does. */
const PATIENCE_MS = 180_000;

/** Makes a test again whose calls did not fall into one window of a limit, as on a busy machine. */
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

/** Makes a test again in whose midst the day has ended (UTC). */
export function inOneDay(work: () => Promise<void>): () => Promise<void> {
  const today = () => new Date().toISOString().slice(0, 10);
  return async () => {
    const begun = today();
    try {
      await work();
    } catch (error) {
      if (today() === begun) throw error;
      await work();
    }
  };
}
