import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, listProcessIds, readCommandLine, signal } from '../../src/base/process-table';
import { PART_NAMES, type PartName, readState, type StackState } from '../../stack/data-dir';
import { freePort, isPortFree } from '../../stack/ports';
import { run } from '../cli/cli';
import { eventually } from '../support/eventually';
import type { Answer } from '../support/http';
import { NOT_DONE } from '../support/not-done';
import { spawnProgram } from '../support/programs';

/** Program that `npm start` runs once it has built. */
const LAUNCHER = resolve('dist/stack/main.js');
const READY_MS_MAX = 120_000;
const STOP_MS_MAX = 60_000;
/** For what a killed part was doing: it is done again by the next one. */
export const RECOVERY_MS_MAX = 90_000;
/** Settings of the stack that a developer's shell may hold. */
const SETTINGS = /^(TEMPORAL_|MONGODB_|SANDBOX_|KEYS_FILE$|PUBLIC_URL$|LOG_LEVEL$|DATA_DIR$|PORT$)/;

export interface StackOptions {
  autoplay?: 'on' | 'off';
  env?: NodeJS.ProcessEnv;
  /** Folder of a stack that was stopped; a new one by default. */
  dataDir?: string;
  /** Does what the start waits for. */
  whileStarting?: (cli: CommandLine) => Promise<unknown>;
}

type CommandLine = (...args: string[]) => Promise<Answer['body']>;

export type RunningStack = Awaited<ReturnType<typeof startStack>>;

/** Starts what `npm start` does, on free ports and in a folder of its own, until it is ready. */
export async function startStack({
  autoplay = 'off',
  env: more = {},
  dataDir = mkdtempSync(join(tmpdir(), 'chaos-')),
  whileStarting = async () => {},
}: StackOptions = {}) {
  const [port, bankPort, uiPort] = [await freePort(), await freePort(), await freePort()];
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !SETTINGS.test(name))),
    ...{ DATA_DIR: dataDir, PORT: String(port), SANDBOX_BANK_PORT: String(bankPort) },
    ...{ TEMPORAL_UI_PORT: String(uiPort), SANDBOX_AUTOPLAY: autoplay },
    // As under npm: it stops by itself when its parent, this test, is killed.
    npm_lifecycle_event: 'start',
    ...more,
  };
  const program = spawnProgram([LAUNCHER], { env });
  const { process: launcher, exited } = program;
  const state = () => readState(dataDir);
  const readRunning = () => {
    const running = state();
    if (running === undefined) throw new Error('stack.json is missing while the stack runs.');
    return running;
  };
  const cli: CommandLine = (...args) => {
    const own = { KEYS_DIR: join(dataDir, 'keys'), ...env };
    const isDone = async () => {
      const { exit, stdout, stderr } = await run(own, ...args, '--json');
      if (exit !== 0 && !NOT_DONE.test(stderr)) throw new Error(`${args.join(' ')}: ${stderr}`);
      return exit === 0 && JSON.parse(stdout);
    };
    return eventually(args.join(' '), isDone, RECOVERY_MS_MAX);
  };
  let killedAt = Number.NEGATIVE_INFINITY;
  const destroy = async (): Promise<void> => {
    await endAll(program, dataDir);
    rmSync(dataDir, { recursive: true, force: true });
  };
  const isReady = async () => {
    if (launcher.exitCode !== null) throw new Error('The launcher has ended.');
    return /^ready /m.test(program.said());
  };
  try {
    const isUp = eventually('the launcher to say ready', isReady, READY_MS_MAX);
    await Promise.all([isUp, whileStarting(cli)]);
  } catch (error) {
    await destroy();
    throw new Error(`The stack did not come up:\n${program.said()}`, { cause: error });
  }
  const ports = [port, bankPort, uiPort, ...serverPorts(readRunning())];
  const url = `http://localhost:${port}`;
  const bankUrl = `http://localhost:${bankPort}`;
  return {
    ...{ url, bankUrl, dataDir, destroy },
    /** `stack.json` as it stands; undefined once the stack has stopped. */
    state,
    readState: readRunning,
    /** Output of the command line, run in this process, with `--json`. */
    cli,
    /** Process ids that `stack.json` names now, and the launcher's. */
    pids: () => [...listPids(state()), launcher.pid ?? 0].filter((pid) => pid > 0),
    /** When a part was last killed, Unix time in ms. */
    lastKillAt: () => killedAt,
    /** Kills a part with SIGKILL. @returns whether a new process of it runs and all are ready */
    kill: (part: PartName) => {
      const victim = state()?.[part]?.pid;
      if (victim == null) throw new Error(`${part} has no process to kill.`);
      process.kill(victim, 'SIGKILL');
      killedAt = Date.now();
      return async (): Promise<boolean> => {
        const pid = state()?.[part]?.pid;
        if (pid == null || pid === victim) return false;
        return (await isOk(`${url}/readyz`)) && (await isOk(`${bankUrl}/healthz`));
      };
    },
    /** Taken ports among those that the stack listens on. */
    takenPorts: async () => {
      const free = await Promise.all(ports.map(isPortFree));
      return ports.filter((_, index) => free[index] === false);
    },
    /** Ends the launcher by SIGTERM. @returns its exit code */
    stop: async () => {
      launcher.kill('SIGTERM');
      const code = await exited;
      assertNothingRefused(dataDir);
      return code;
    },
  };
}

async function isOk(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).status === 200;
  } catch {
    return false;
  }
}

/** @throws Error with what MongoDB has refused one of the processes: its role lacks a right. */
function assertNothingRefused(dataDir: string): void {
  for (const part of ['api', 'worker', 'sandbox_bank']) {
    const log = readFileSync(join(dataDir, 'logs', `${part}.log`), 'utf8');
    const refusal = /.*not authorized on .*/.exec(log);
    if (refusal !== null) throw new Error(`MongoDB has refused the ${part}: ${refusal[0]}`);
  }
}

/** Processes of this machine whose command line names the stack's folder: its servers. */
export function serversOn(dataDir: string): number[] {
  return listProcessIds().filter((pid) => isAlive(pid) && readCommandLine(pid).includes(dataDir));
}

function listPids(state: StackState | undefined): number[] {
  return state === undefined
    ? []
    : PART_NAMES.flatMap((part) => (state[part] === undefined ? [] : (state[part].pid ?? 0)));
}

function serverPorts({ temporal, mongodb }: StackState): number[] {
  const addresses = [temporal.address, new URL(mongodb.uri).host];
  return addresses.map((address) => Number(address.split(':').at(-1)));
}

/** In the ordinary way where it can, by force where it can't; node parts end with the launcher. */
async function endAll(
  { process: launcher, exited }: ReturnType<typeof spawnProgram>,
  dataDir: string,
): Promise<void> {
  launcher.kill('SIGTERM');
  const answered = new AbortController();
  const late = sleep(STOP_MS_MAX, undefined, { signal: answered.signal }).catch(() => {});
  await Promise.race([exited, late]);
  answered.abort();
  launcher.kill('SIGKILL');
  await exited;
  for (const pid of serversOn(dataDir)) signal(pid, 'SIGKILL');
}
