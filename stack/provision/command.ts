import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { OperationalError } from '../../src/base/errors';

const OUTPUT_LINES_MAX = 12;

export interface CommandOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  timeoutMs: number;
  signal?: AbortSignal;
  onLine?(line: string): void;
}

/**
 * @returns the whole stdout
 * @throws OperationalError with the end of the output, if the tool fails or takes too long
 */
export async function runCommand(
  tool: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<string> {
  const child = spawn(tool, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: options.signal,
    timeout: options.timeoutMs,
  });
  let stdout = '';
  const lastLines: string[] = [];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      if (line.trim() === '') return;
      lastLines.push(line.trim());
      if (lastLines.length > OUTPUT_LINES_MAX) lastLines.shift();
      options.onLine?.(line.trim());
    });
  }
  return await new Promise<string>((resolve, reject) => {
    const fail = (why: string): void => reject(new OperationalError(`\`${tool}\` ${why}`));
    child.once('error', (error) => fail(`could not be run: ${error.message}`));
    child.once('close', (code, killedBy) => {
      if (code === 0) return resolve(stdout);
      const output = lastLines.length === 0 ? '' : `:\n    ${lastLines.join('\n    ')}`;
      const how = killedBy === null ? `failed with exit code ${code}` : `was ended by ${killedBy}`;
      fail(`${how}${output}`);
    });
  });
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
export function needTool(name: string, ...others: string[]): string {
  for (const candidate of [name, ...others]) {
    const path = findOnPath(candidate);
    if (path !== undefined) return path;
  }
  throw new OperationalError(`${name} is not installed`);
}
