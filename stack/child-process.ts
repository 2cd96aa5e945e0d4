import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, OperationalError } from '../src/base/errors';
import { lastLines, openLog } from './log-file';
import type { Task } from './terminal';

const READY_POLL_MS = 100;

export interface ChildOptions {
  name: string;
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  logFile: string;
  /** The child ends when its channel closes. */
  ipc?: boolean;
  graceMs: number;
}

export interface Child {
  name: string;
  pid: number;
  exited: Promise<string>;
  hasExited(): boolean;
  /** Sends SIGTERM, then SIGKILL after the grace. */
  stop(): Promise<void>;
  kill(): void;
}

/**
 * Starts the child in its own process group: Ctrl-C reaches only the launcher, which ends the parts
 * in order.
 * @throws OperationalError if the program can't be run
 */
export async function startChild(options: ChildOptions): Promise<Child> {
  const log = openLog(options.logFile);
  const settings: SpawnOptions = {
    detached: true,
    stdio: options.ipc === true ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
    env: options.env ?? process.env,
  };
  const child = spawn(options.command, options.args, settings);
  closeSync(log);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) =>
      reject(new OperationalError(`${options.name} could not be started: ${error.message}`)),
    );
  });
  // The exit that follows a broken channel is what counts.
  child.on('error', () => {});
  return toChild(child, options);
}

/** @throws OperationalError with the end of the log if the child ends first or takes too long */
export async function waitUntilUp(
  child: Child,
  logFile: string,
  timeoutMs: number,
  probe: () => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    try {
      await orAborted(probe(), signal);
      // Another program may have answered on the port that this child failed to get.
      if (!child.hasExited()) return;
    } catch (error) {
      if (Date.now() > deadline)
        throw startFailure(child, 'did not come up in time', logFile, error);
    }
    if (child.hasExited()) throw startFailure(child, await child.exited, logFile);
    await sleep(READY_POLL_MS);
  }
}

function toChild(child: ChildProcess, options: ChildOptions): Child {
  const { pid } = child;
  if (pid === undefined) throw new OperationalError(`${options.name} could not be started`);
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, killedBy) =>
      resolve(killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}`),
    );
  });
  const hasExited = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    name: options.name,
    pid,
    exited,
    hasExited,
    async stop() {
      child.kill('SIGTERM');
      const killTimer = setTimeout(() => child.kill('SIGKILL'), options.graceMs);
      await exited;
      clearTimeout(killTimer);
    },
    kill: () => void child.kill('SIGKILL'),
  };
}

function startFailure(
  child: Child,
  what: string,
  logFile: string,
  cause?: unknown,
): OperationalError {
  const why = cause === undefined ? '' : ` (${describeError(cause)})`;
  return new OperationalError(
    `${child.name} ${what}${why}. The end of ${logFile}:\n${lastLines(logFile)}`,
  );
}

/**
 * Waits for work, but not beyond the signal. What the work holds is for the caller to end.
 * @throws the reason of the signal
 */
export async function orAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return await work;
  const over = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { signal: over.signal });
  });
  return await Promise.race([work, aborted]).finally(() => over.abort());
}

const CALL_MS_MAX = 3_000;
const ANSWER_LENGTH_MAX = 200;

export interface Probe {
  name: string;
  url: string;
}

/** @throws OperationalError naming the probes that do not all answer 200 in one round */
export async function waitUntilReady(
  probes: readonly Probe[],
  timeoutMs: number,
  task: Task,
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const missing = (await Promise.all(probes.map(whyNotReady))).filter((why) => why !== undefined);
    signal.throwIfAborted();
    if (missing.length === 0) return;
    task.say(`waiting for ${missing.join('; ')}`);
    if (Date.now() > deadline) {
      throw new OperationalError(`Not ready in time: ${missing.join('; ')}`);
    }
    await sleep(READY_POLL_MS, undefined, { signal });
  }
}

async function whyNotReady({ name, url }: Probe): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(CALL_MS_MAX) });
    const text = await response.text();
    if (response.status === 200) return undefined;
    return `${name} (${response.status} ${text.slice(0, ANSWER_LENGTH_MAX)})`;
  } catch (error) {
    return `${name} (${describeError(error)})`;
  }
}
