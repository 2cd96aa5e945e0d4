import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { OperationalError } from '../../src/base/errors';
import { startChild } from '../../stack/child-process';
import { lastLines } from '../../stack/log-file';
import type { Setting } from '../servers/config';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
const GRACE_MS = 2_000;

/** @throws OperationalError unless the command prints what `schema` accepts */
export async function runCli<T>(
  args: readonly [string, ...string[]],
  schema: z.ZodType<T>,
  env: NodeJS.ProcessEnv,
  { dir, signal }: Pick<Setting, 'dir' | 'signal'>,
): Promise<T> {
  const logFile = join(dir, `${args[0]}-${performance.now()}.log`);
  const name = args.join(' ');
  const child = await startChild({
    ...{ name, env, logFile, graceMs: GRACE_MS },
    command: process.execPath,
    args: [MAIN, ...args, '--json'],
  });
  const stop = () => void child.stop();
  signal.addEventListener('abort', stop, { once: true });
  const how = await child.exited;
  signal.removeEventListener('abort', stop);
  signal.throwIfAborted();
  const output = schema.safeParse(parseOutput(readFileSync(logFile, 'utf8')));
  if (output.success) return output.data;
  throw new OperationalError(`${name} ${how}:\n${lastLines(logFile)}`);
}

/** Parses the JSON after the progress lines, which are in the same file. */
function parseOutput(text: string): unknown {
  try {
    return JSON.parse(text.slice(Math.max(0, text.search(/^\{/m))));
  } catch {
    return undefined;
  }
}
