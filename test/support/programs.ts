import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { cacheDirectory, provision, type Server } from '../../stack/provision/provision';
import { silentProgress } from '../../stack/terminal';

export async function provisionQuietly(server: Server): Promise<string> {
  const context = { cacheDir: cacheDirectory(process.env), env: process.env };
  const { signal } = new AbortController();
  return (await provision(server, { ...context, progress: silentProgress, signal })).path;
}

/** Starts a program of ours that goes on. @returns it, what it says, and how it ends */
export function spawnProgram(args: string[], options: { cwd?: string; env: NodeJS.ProcessEnv }) {
  const child = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  const exited = new Promise<number | null>((done) => child.once('close', done));
  return { process: child, said: () => text, exited };
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
