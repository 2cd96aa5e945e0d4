import { Gauge, type Registry } from 'prom-client';
import { describeMetric } from './metrics';

export interface ClockMeter {
  /** @param taskTime real time, ms since the epoch, when Temporal started the task */
  observe(taskTime: number): void;
}

const WINDOW_MS = 60_000;
/** With fewer, the delay of a busy process would look like a wrong clock. */
const SAMPLES_MIN = 3;
/** More than an alert needs, which waits for ten minutes. */
const WARN_SAMPLES_MIN = 10;
const WARN_MS = 1_000;

interface Window {
  from: number;
  samples: number;
  leastMs: number;
}

/**
 * Uses the least difference of the last minutes, since work and queues only add to it. A payout is
 * refused where it exceeds five seconds.
 */
export function createClockMeter(
  registry: Registry,
  log: { warn: (fields: object, line: string) => void },
  now: () => number = Date.now,
): ClockMeter {
  let windows: Window[] = [];
  const read = (samplesMin = SAMPLES_MIN): number | undefined => {
    const recent = windows.filter(({ from }) => from > now() - 3 * WINDOW_MS);
    const samples = recent.reduce((sum, window) => sum + window.samples, 0);
    return samples < samplesMin ? undefined : Math.min(...recent.map(({ leastMs }) => leastMs));
  };
  const warn = () => {
    const ahead = read(WARN_SAMPLES_MIN);
    if (ahead === undefined || Math.abs(ahead) < WARN_MS) return;
    const fields = { seconds: ahead / 1_000, code: 'clock_differs' };
    log.warn(fields, 'the clock of this worker differs from that of Temporal');
  };
  const gauge: Gauge = new Gauge({
    ...describeMetric('payments_clock_ahead_seconds'),
    registers: [registry],
    collect: () => {
      const ahead = read();
      gauge.remove();
      if (ahead !== undefined) gauge.set(ahead / 1_000);
    },
  });
  return {
    observe: (taskTime) => {
      const at = now();
      let window = windows.at(-1);
      if (window === undefined || at - window.from >= WINDOW_MS) {
        warn();
        window = { from: at, samples: 0, leastMs: Number.POSITIVE_INFINITY };
        windows = [...windows.slice(-2), window];
      }
      window.samples += 1;
      window.leastMs = Math.min(window.leastMs, at - taskTime);
    },
  };
}
