import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { OperationalError } from '../../src/base/errors';
import { startChild } from '../../stack/child-process';
import { lastLines } from '../../stack/log-file';
import type { Setting } from '../servers/config';
import { readMemory } from './process';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
const SAMPLE_MS = 100;
const GRACE_MS = 2_000;

export interface CliRun<T> {
  output: T;
  seconds: number;
  /** Peak memory of the process in MiB; null without /proc. */
  peak_mib: number | null;
}

/** @throws OperationalError unless the command prints what `schema` accepts */
export async function runCli<T>(
  args: readonly [string, ...string[]],
  schema: z.ZodType<T>,
  env: NodeJS.ProcessEnv,
  { dir, signal }: Pick<Setting, 'dir' | 'signal'>,
): Promise<CliRun<T>> {
  const logFile = join(dir, `${args[0]}-${performance.now()}.log`);
  const name = args.join(' ');
  const began = performance.now();
  const child = await startChild({
    ...{ name, env, logFile, graceMs: GRACE_MS },
    command: process.execPath,
    args: [MAIN, ...args, '--json'],
  });
  let peak_mib: number | null = null;
  while (!child.hasExited() && !signal.aborted) {
    peak_mib = readMemory(child.pid, 'peak') ?? peak_mib;
    await Promise.race([child.exited, sleep(SAMPLE_MS)]);
  }
  if (signal.aborted) await child.stop();
  signal.throwIfAborted();
  const seconds = (performance.now() - began) / 1_000;
  const output = schema.safeParse(parseOutput(readFileSync(logFile, 'utf8')));
  if (output.success) return { output: output.data, seconds, peak_mib };
  throw new OperationalError(`${name} ${await child.exited}:\n${lastLines(logFile)}`);
}

/** Parses the JSON after the progress lines, which are in the same file. */
function parseOutput(text: string): unknown {
  try {
    return JSON.parse(text.slice(Math.max(0, text.search(/^\{/m))));
  } catch {
    return undefined;
  }
}
