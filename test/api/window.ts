/** Less than the window of a limit, 10 seconds. */
const WINDOW_MS = 9_000;

/** Makes a test again, up to twice, whose calls did not fall into one window of a limit. */
export function inOneWindow(work: () => Promise<void>): () => Promise<void> {
  return async () => {
    for (let repeats = 0; ; repeats += 1) {
      const begun = Date.now();
      try {
        return await work();
      } catch (error) {
        if (repeats === 2 || Date.now() - begun < WINDOW_MS) throw error;
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
