import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, OperationalError } from '../src/base/errors';
import { PROGRAM } from '../src/base/program';
import { ensureKeys } from '../src/encryption/ensure-keys';
import { createConnectors, listPayoutConnectors, SANDBOX_CONNECTOR } from '../src/routing';
import type { StackConfig } from './config';
import { demoLines } from './demo-account';
import { createLogCheck, lastLines } from './log-file';
import {
  childEnvironment,
  type Inspect,
  initialState,
  logFile,
  NODE_PART_NAMES,
  stackParts,
} from './parts';
import { LOOPBACK } from './ports';
import { needSpace } from './provision/provision';
import { waitUntilReady } from './readiness';
import { findServers } from './remote-servers';
import { keepStatements } from './sandbox-statements';
import { keepSepaStatements } from './sepa-statements';
import { PART_NAMES, type PartName, type StackState, writeState } from './state-file';
import { type PartChange, type Supervisor, supervise } from './supervisor';
import type { Progress } from './terminal';
import { watchSources } from './watch';

const ROOT = join(__dirname, '../..');

const READY_MS_MAX = 120_000;
const EARLY_DEATHS_MAX = 6;
const DATA_MEGABYTES_MIN = 500;
const LOG_CHECK_MS = 20_000;

export interface Launch {
  config: StackConfig;
  env: NodeJS.ProcessEnv;
  inspect?: Inspect;
  watch: boolean;
  progress: Progress;
  signal: AbortSignal;
  /** Receives the supervisor early, so that a second Ctrl-C can hurry it. */
  onSupervisor(supervisor: Supervisor): void;
}

/**
 * Runs the whole stack until `signal`.
 * @throws OperationalError if it can't be started; nothing is left running then
 */
export async function launch(request: Launch): Promise<void> {
  const { config, inspect, progress, signal } = request;
  await needSpace(config.dataDir, DATA_MEGABYTES_MIN, 'DATA_DIR');
  const executables = await findServers(config, request);
  const connectors = createConnectors(
    SANDBOX_CONNECTOR,
    config.liveConnectors,
    config.sandboxConnectors,
  );
  const keys = ensureKeys(config.dataDir, listPayoutConnectors(connectors));
  const state = initialState(config, keys);
  const env = childEnvironment(config, keys, request.env);
  const watch = watchParts(config, state, progress, signal);
  const parts = stackParts(config, executables, env, { inspect, progress });
  const supervisor = supervise(parts, watch.onChange);
  request.onSupervisor(supervisor);
  const logs = PART_NAMES.map((part) => logFile(config, part));
  const logCheck = setInterval(createLogCheck(logs, progress.line), LOG_CHECK_MS);
  let statements: Awaited<ReturnType<typeof keepStatements>> | undefined;
  let sepaStatements: ReturnType<typeof keepSepaStatements> | undefined;
  try {
    writeState(config.dataDir, state);
    await untilReady(supervisor, watch.hopeless, config, progress, signal);
    if (inspect !== undefined) {
      progress.line(`A debugger can attach to ${inspect.part}: ${LOOPBACK}:${inspect.port}`);
    }
    statements = await keepStatements(config, progress, signal);
    sepaStatements = keepSepaStatements(config, progress, signal);
    for (const line of await summary(config, state, env)) progress.line(line);
    watch.markReady();
    const restart = (part: PartName) => supervisor.restart(part);
    const names = parts.flat().map(({ name }) => name);
    const running = NODE_PART_NAMES.filter((name) => names.includes(name));
    if (request.watch)
      await watchSources({ root: ROOT, parts: running, restart, progress, signal });
    else await untilAborted(signal);
  } finally {
    clearInterval(logCheck);
    await progress.during('Stopping', async () => {
      await Promise.all([statements?.stop(), sepaStatements?.stop()]);
      await supervisor.stop();
    });
  }
}

function watchParts(
  config: StackConfig,
  state: StackState,
  progress: Progress,
  signal: AbortSignal,
) {
  const deaths = new Map<PartName, number>();
  let isReady = false;
  let giveUp: (failure: OperationalError) => void = () => {};
  const hopeless = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  hopeless.catch(() => {});
  return {
    hopeless,
    markReady: () => {
      isReady = true;
    },
    onChange: ({ part, pid, what, reason, retryInMs }: PartChange<PartName>): void => {
      const row = state[part];
      if (row !== undefined) row.pid = pid;
      try {
        writeState(config.dataDir, state);
      } catch (error) {
        // An error such as a full disk does not stop the running parts.
        progress.line(`stack.json could not be written: ${describeError(error)}`);
      }
      if (what === 'restarting') return;
      if (what === 'up') {
        if (isReady || deaths.has(part)) progress.line(`${part} is up again (pid ${pid})`);
        return;
      }
      if (signal.aborted) return;
      progress.line(`${part} ${what}: ${reason}; starting it again in ${retryInMs} ms`);
      deaths.set(part, (deaths.get(part) ?? 0) + 1);
      if (isReady || Number(deaths.get(part)) < EARLY_DEATHS_MAX) return;
      const log = logFile(config, part);
      giveUp(
        new OperationalError(`${part} does not stay up. The end of ${log}:\n${lastLines(log)}`),
      );
    },
  };
}

async function untilReady(
  supervisor: Supervisor,
  hopeless: Promise<never>,
  config: StackConfig,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  await progress.during('Starting', async (task) => {
    task.say('Temporal and MongoDB');
    await startUntilAborted(supervisor, signal);
    const probes = [
      { name: 'api', url: `http://${LOOPBACK}:${config.port}/readyz` },
      { name: 'sandbox bank', url: `http://${LOOPBACK}:${config.sandboxBankPort}/healthz` },
    ];
    const waitAbort = new AbortController();
    const either = AbortSignal.any([signal, waitAbort.signal]);
    try {
      await Promise.race([waitUntilReady(probes, READY_MS_MAX, task, either), hopeless]);
    } finally {
      waitAbort.abort();
    }
  });
}

/** @throws the reason of the signal, once nothing runs any more */
async function startUntilAborted(supervisor: Supervisor, signal: AbortSignal): Promise<void> {
  const started = new AbortController();
  signal.throwIfAborted();
  signal.addEventListener('abort', () => void supervisor.stop(), { signal: started.signal });
  try {
    await supervisor.start();
  } finally {
    started.abort();
  }
}

const LIVE_LINES = [
  'Live banks are served: no demo account is made, and no key printed.',
  `An account: ${PROGRAM.cli} account create --name NAME`,
];

async function summary(
  config: StackConfig,
  state: StackState,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  return [
    '',
    ...(config.live ? LIVE_LINES : await demoLines(config.dataDir, config.publicUrl, env)),
    '',
    `Temporal UI    ${state.temporal.ui_url ?? `that of ${state.temporal.address}`}`,
    `Logs           ${config.dataDir}/logs`,
    'Ctrl-C stops everything; the data stays.',
    `ready ${state.api.url}`,
  ];
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  // The timer keeps the process alive if every server is external.
  while (!signal.aborted) await sleep(60_000, undefined, { signal }).catch(() => {});
}
