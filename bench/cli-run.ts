import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { StackFailure } from '../src/os/failure';
import { startChild } from '../stack/child-process';
import { lastLines } from '../stack/log-file';
import { memoryOf } from './memory';
import type { Setting } from './servers';

const SAMPLE_MS = 100;
const GRACE_MS = 2_000;

/** Run of the command line as a process of its own. */
export interface CliRun<T> {
  answer: T;
  seconds: number;
  /** Most memory that the process held, in MiB; null where there is no /proc. */
  rss_mib: number | null;
}

/**
 * Runs the command line, and watches its memory.
 * @param env addresses, beside those of `setting`
 * @throws StackFailure unless it prints what `schema` accepts
 */
export async function runCli<T>(
  args: readonly [string, ...string[]],
  schema: z.ZodType<T>,
  env: NodeJS.ProcessEnv,
  { dir, signal }: Pick<Setting, 'dir' | 'signal'>,
): Promise<CliRun<T>> {
  const logFile = join(dir, `${args[0]}-${performance.now()}.log`);
  const main = join(__dirname, '..', 'src', 'cli', 'main.js');
  const name = args.join(' ');
  const began = performance.now();
  const child = await startChild({
    name,
    command: process.execPath,
    args: [main, ...args, '--json'],
    env,
    logFile,
    graceMs: GRACE_MS,
  });
  let rss_mib: number | null = null;
  while (!child.hasExited() && !signal.aborted) {
    rss_mib = memoryOf(child.pid, 'most') ?? rss_mib;
    await Promise.race([child.exited, sleep(SAMPLE_MS)]);
  }
  if (signal.aborted) await child.stop();
  signal.throwIfAborted();
  const seconds = (performance.now() - began) / 1_000;
  const found = schema.safeParse(parsed(readFileSync(logFile, 'utf8')));
  if (found.success) return { answer: found.data, seconds, rss_mib };
  throw new StackFailure(`${name} ${await child.exited}:\n${lastLines(logFile)}`);
}

/** Reads what was printed, behind the lines of progress, which stand in the same file. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text.slice(Math.max(0, text.search(/^\{/m))));
  } catch {
    return undefined;
  }
}
