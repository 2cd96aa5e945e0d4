import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { cacheDirectory, provision, type Server } from '../../stack/provision/provision';
import { silentProgress } from '../../stack/terminal';

/** Finds the executable of a server, or fetches it. @returns its path */
export async function provisionQuietly(server: Server): Promise<string> {
  const context = { cacheDir: cacheDirectory(process.env), env: process.env };
  const { signal } = new AbortController();
  return (await provision(server, { ...context, progress: silentProgress, signal })).path;
}

export async function runProgram(
  command: string,
  args: string[],
  options: { cwd?: string; env?: Record<string, string>; input?: string } = {},
): Promise<string> {
  const env = { ...process.env, ...options.env };
  const running = promisify(execFile)(command, args, { cwd: options.cwd, env });
  running.child.stdin?.on('error', () => undefined).end(options.input);
  const { stdout } = await running.catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}`);
  });
  return stdout;
}
