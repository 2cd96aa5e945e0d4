/**
 * Milliseconds of the processor's own work, whatever else keeps the machine busy: those of the
 * fastest of three runs, since the first may compile and another collect garbage.
 */
export function leastCpuMs(work: () => void): number {
  const runs = [1, 2, 3].map(() => {
    const began = process.cpuUsage();
    work();
    return process.cpuUsage(began).user / 1_000;
  });
  return Math.min(...runs);
}
