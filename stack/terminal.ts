import { describeError } from '../src/base/errors';

const REDRAW_MS = 200;
const LINE_EVERY_MS = 10_000;

export interface Screen {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

export interface Task {
  say(detail: string): void;
}

export interface Progress {
  line(text: string): void;
  during<T>(name: string, work: (task: Task) => Promise<T>): Promise<T>;
}

interface ScreenLine {
  name: string;
  detail: string;
  since: number;
}

export function showProgress(screen: Screen = process.stdout, now = Date.now): Progress {
  const active = new Set<ScreenLine>();
  let isDrawn = false;
  let timer: NodeJS.Timeout | undefined;

  const clear = (): void => {
    if (isDrawn) screen.write('\r\u001b[K');
    isDrawn = false;
  };
  const draw = (): void => {
    if (active.size === 0) return;
    const text = [...active]
      .map(({ name, detail, since }) => {
        const seconds = Math.floor((now() - since) / 1000);
        const minutes = seconds < 60 ? '' : `${Math.floor(seconds / 60)}m`;
        const rest = String(seconds % 60).padStart(minutes === '' ? 1 : 2, '0');
        return `${name}${detail === '' ? '' : `: ${detail}`} (${minutes}${rest}s)`;
      })
      .join(' · ');
    if (screen.isTTY !== true) return void screen.write(`  ${text}\n`);
    clear();
    screen.write(text.slice(0, (screen.columns ?? 80) - 1));
    isDrawn = true;
  };

  return {
    line(text) {
      clear();
      screen.write(`${text}\n`);
    },
    async during(name, work) {
      const line: ScreenLine = { name, detail: '', since: now() };
      active.add(line);
      timer ??= setInterval(draw, screen.isTTY === true ? REDRAW_MS : LINE_EVERY_MS);
      try {
        return await work({ say: (detail) => void Object.assign(line, { detail }) });
      } finally {
        active.delete(line);
        clear();
        if (active.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      }
    },
  };
}

export const silentProgress: Progress = {
  line: () => {},
  during: (_name, work) => work({ say: () => {} }),
};

export function failureLine(error: unknown): string {
  return `\n${describeError(error)}`;
}
