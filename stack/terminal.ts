import { reasonOf } from '../src/os/failure';

const REDRAW_MS = 200;
const LINE_EVERY_MS = 10_000;

/** Where progress goes; `isTTY` decides between one updating line and a line now and then. */
export interface Screen {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

/** One thing that takes a while. */
export interface Task {
  /** What it is doing at the moment, e.g. `downloading 12 of 80 MB`. */
  say(detail: string): void;
}

export interface Progress {
  /** A line that stays. */
  line(text: string): void;
  /** Shows `name`, what it does and for how long, until `work` has ended. */
  during<T>(name: string, work: (task: Task) => Promise<T>): Promise<T>;
}

interface Shown {
  name: string;
  detail: string;
  since: number;
}

/** Progress for a person watching a terminal, or for a log file. */
export function showProgress(screen: Screen = process.stdout, now = Date.now): Progress {
  const active = new Set<Shown>();
  let drawn = false;
  let timer: NodeJS.Timeout | undefined;

  const clear = (): void => {
    if (drawn) screen.write('\r\u001b[K');
    drawn = false;
  };
  const draw = (): void => {
    if (active.size === 0) return;
    const text = [...active].map((shown) => describe(shown, now())).join(' · ');
    if (screen.isTTY !== true) return void screen.write(`  ${text}\n`);
    clear();
    screen.write(text.slice(0, (screen.columns ?? 80) - 1));
    drawn = true;
  };
  const stopTimerWhenIdle = (): void => {
    if (active.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    line(text) {
      clear();
      screen.write(`${text}\n`);
    },
    async during(name, work) {
      const shown: Shown = { name, detail: '', since: now() };
      active.add(shown);
      timer ??= setInterval(draw, screen.isTTY === true ? REDRAW_MS : LINE_EVERY_MS);
      try {
        return await work({ say: (detail) => void Object.assign(shown, { detail }) });
      } finally {
        active.delete(shown);
        clear();
        stopTimerWhenIdle();
      }
    },
  };
}

/** Writes nothing: for tests whose own output is what matters. */
export const silentProgress: Progress = {
  line: () => {},
  during: (_name, work) => work({ say: () => {} }),
};

/** `1m05s`, for elapsed milliseconds. */
export function elapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`;
}

/** An error as the terminal shows it. */
export function failureLine(error: unknown): string {
  return `\n${reasonOf(error)}`;
}

function describe(shown: Shown, at: number): string {
  const doing = shown.detail === '' ? '' : `: ${shown.detail}`;
  return `${shown.name}${doing} (${elapsed(at - shown.since)})`;
}
