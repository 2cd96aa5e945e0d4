import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from '../../stack/provision/command';
import { cacheDirectory } from '../../stack/provision/provision';
import { runProgram } from './programs';

const NEEDED_IN_CI = ['python3'];

export function explainSkip(name: string, env: NodeJS.ProcessEnv = process.env) {
  const isNeeded = env['CI'] === 'true' && NEEDED_IN_CI.includes(name);
  const runs = isNeeded || findOnPath(name, env['PATH']) !== undefined;
  return runs ? undefined : `there is no ${name}`;
}

/** Describes tests that need a program of another language. Without it, their title says so. */
export function describeWith(name: string, title: string, tests: () => void): void {
  const why = explainSkip(name);
  if (why === undefined) describe(title, tests);
  else describe.skip(`${title} (skipped: ${why})`, tests);
}

/** Installs Python packages once on a machine, apart from those of its Python; gives their folder. */
export async function installPythonTools(requirements: string): Promise<string> {
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const cache = cacheDirectory(process.env);
  const folder = join(cache, `python-tools-${hash}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  const partial = mkdtempSync(`${folder}.partial-`);
  try {
    const install = ['-m', 'pip', 'install', '-q', '--target', partial, '-r', requirements];
    await runProgram('python3', install);
    renameSync(partial, folder);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    // Another run may have installed them meanwhile.
    if (!existsSync(folder)) throw error;
  }
  return folder;
}
