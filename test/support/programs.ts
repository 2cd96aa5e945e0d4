import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a program while this process serves the API. @throws Error with all that it printed */
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
