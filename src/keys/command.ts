import { execFile, execFileSync } from 'node:child_process';
import { basename } from 'node:path';
import { fileSource, type KeySource } from './source';

/** Time between two runs of the program, while its keys suffice. */
export const RUN_EVERY_MS = 30_000;
/** Time without an answer after which nothing is sealed any more. */
export const SILENT_MS_MAX = 300_000;
/** Time between two runs for a key that is not in hand; the process waits for each. */
export const ASK_EVERY_MS = 30_000;
const ASK_MS_MAX = 1_000;
const RUN_MS_MAX = 10_000;
const BYTES_MAX = 1_048_576;

/**
 * Makes the source of a file, or of the program that stands for it.
 * @param command empty for none
 * @throws Error at once when the program does not answer
 */
export function keySource(path: string, command = '', clock?: () => number): KeySource {
  return command === '' ? fileSource(path) : commandSource(command, basename(path), clock);
}

/**
 * Makes the source of a program that prints what the file of that name would hold, as one that asks a
 * KMS. Its output is never logged, nor are its errors.
 * @param name last part of the file's path, which the program gets as its argument
 * @param clock ms, never set back
 * @throws Error at once when the program does not answer
 */
function commandSource(
  command: string,
  name: string,
  clock: () => number = () => performance.now(),
): KeySource {
  let text = ask(command, name, RUN_MS_MAX);
  let [answeredAt, askedAt, isRunning] = [clock(), clock(), false];

  const take = (answer: string): void => {
    text = answer;
    answeredAt = clock();
  };
  const run = (): void => {
    isRunning = true;
    askedAt = clock();
    const limits = { timeout: RUN_MS_MAX, killSignal: 'SIGKILL', maxBuffer: BYTES_MAX } as const;
    execFile(command, [name], limits, (error, stdout) => {
      isRunning = false;
      if (error === null) take(stdout);
    });
  };
  // Also while nobody asks, so that the first seal after a quiet night has today's keys.
  setInterval(() => !isRunning && run(), RUN_EVERY_MS).unref();

  return {
    name: `output of KEYS_COMMAND for ${name}`,
    stamp: () => {
      const now = clock();
      if (!isRunning && now - askedAt >= RUN_EVERY_MS) run();
      if (now - answeredAt > SILENT_MS_MAX) throw failure(name);
      return text;
    },
    read: () => text,
    refresh: () => {
      if (isRunning || clock() - askedAt < ASK_EVERY_MS) return;
      askedAt = clock();
      take(ask(command, name, ASK_MS_MAX));
    },
  };
}

/** @throws Error that tells nothing of what the program said */
function ask(command: string, name: string, timeout: number): string {
  try {
    return execFileSync(command, [name], {
      ...{ timeout, killSignal: 'SIGKILL', maxBuffer: BYTES_MAX, encoding: 'utf8' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    throw failure(name);
  }
}

function failure(name: string): Error {
  return new Error(`KEYS_COMMAND gives no ${name}: it fails, or takes too long.`);
}
