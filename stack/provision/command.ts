import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { OperationalError } from '../../src/base/errors';

const OUTPUT_LINES_MAX = 12;

export interface CommandOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  timeoutMs: number;
  signal?: AbortSignal;
}

/**
 * @returns the whole stdout
 * @throws OperationalError with the end of the output, if the tool fails or takes too long
 */
export async function runCommand(
  tool: string,
  args: readonly string[],
  { timeoutMs: timeout, ...options }: CommandOptions,
): Promise<string> {
  const limits = { timeout, maxBuffer: Number.POSITIVE_INFINITY };
  const running = promisify(execFile)(tool, args, { ...options, ...limits });
  running.child.stdin?.end();
  try {
    return (await running).stdout;
  } catch (error) {
    const { message, code, signal, stdout = '', stderr = '' } = Object(error);
    const isExit = typeof code === 'number' || typeof signal === 'string';
    if (!isExit) throw new OperationalError(`\`${tool}\` could not be run: ${message}`);
    const how = signal == null ? `failed with exit code ${code}` : `was ended by ${signal}`;
    const lines = `${stdout}\n${stderr}`.split('\n').map((line) => line.trim());
    const output = lines.filter((line) => line !== '').slice(-OUTPUT_LINES_MAX);
    const end = output.length === 0 ? '' : `:\n    ${output.join('\n    ')}`;
    throw new OperationalError(`\`${tool}\` ${how}${end}`);
  }
}

/** Skips npm's own directories of scripts. */
export function findOnPath(name: string, path = process.env['PATH'] ?? ''): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules'))
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @throws OperationalError naming the tool */
export function needTool(name: string): string {
  const path = findOnPath(name);
  if (path === undefined) throw new OperationalError(`${name} is not installed`);
  return path;
}
