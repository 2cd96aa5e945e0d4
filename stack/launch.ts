import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, StackFailure } from '../src/base/failure';
import { ensureKeys } from '../src/encryption/ensure-keys';
import type { StackConfig } from './config';
import { demoLines } from './demo-account';
import { boundLog, lastLines } from './log-file';
import {
  childEnvironment,
  type Executables,
  type Inspect,
  initialState,
  logFile,
  stackParts,
} from './parts';
import { LOOPBACK } from './ports';
import { mongod, provision, temporalCli } from './provision';
import { needSpace } from './provision/cache';
import { waitUntilReady } from './readiness';
import { checkRemoteMongo, prepareRemoteTemporal, remoteAccess } from './remote-servers';
import { PART_NAMES, type PartName, type StackState, writeState } from './state-file';
import { type PartChange, type Supervisor, supervise } from './supervisor';
import type { Progress } from './terminal';
import { watchSources } from './watch';

/** The checkout: this file is `dist/stack/launch.js`. */
const ROOT = join(__dirname, '../..');

const READY_MS_MAX = 120_000;
/** Deaths of one part before all was ready, after which it will not come up. */
const EARLY_DEATHS_MAX = 6;
const DATA_MEGABYTES_MIN = 500;
const LOG_CHECK_MS = 20_000;

export interface Launch {
  config: StackConfig;
  env: NodeJS.ProcessEnv;
  /** The process that a debugger may attach to. */
  inspect?: Inspect;
  /** Builds and restarts what a change of the sources concerns. */
  watch: boolean;
  progress: Progress;
  /** Signal that Ctrl-C or SIGTERM aborts. */
  signal: AbortSignal;
  /** Receives the supervisor as soon as there is one, so that a second Ctrl-C can hurry it. */
  onSupervisor(supervisor: Supervisor): void;
}

/**
 * Brings the whole stack up, keeps it up until `signal`, and takes it down again.
 * @throws StackFailure when it can't be brought up; nothing is left running then.
 */
export async function launch(request: Launch): Promise<void> {
  const { config, inspect, progress, signal } = request;
  await needSpace(config.dataDir, DATA_MEGABYTES_MIN, 'DATA_DIR');
  const executables = await findServers(request);
  const keys = ensureKeys(config.dataDir);
  const state = initialState(config, keys);
  const env = childEnvironment(config, keys, request.env);
  const watch = watchParts(config, state, progress, signal);
  const parts = stackParts(config, executables, env, { inspect, progress });
  const supervisor = supervise(parts, watch.onChange);
  request.onSupervisor(supervisor);
  const logCheck = setInterval(() => boundLogs(config), LOG_CHECK_MS);
  try {
    writeState(config.dataDir, state);
    await untilReady(supervisor, watch, config, progress, signal);
    if (inspect !== undefined) {
      progress.line(`A debugger can attach to ${inspect.part}: ${LOOPBACK}:${inspect.port}`);
    }
    for (const line of await summary(config, state, env)) progress.line(line);
    watch.markReady();
    const restart = (part: PartName) => supervisor.restart(part);
    if (request.watch) await watchSources({ root: ROOT, restart, progress, signal });
    else await untilAborted(signal);
  } finally {
    clearInterval(logCheck);
    await progress.during('Stopping', () => supervisor.stop());
  }
}

/** Finds the servers' executables; a server given by address is not fetched but checked. */
async function findServers({ config, env, progress, signal }: Launch): Promise<Executables> {
  const access = remoteAccess(env);
  const context = { cacheDir: config.cacheDir, env, progress, signal };
  const { temporalAddress, mongodbUri } = config;
  const [temporal, mongo] = await Promise.all([
    temporalAddress === undefined
      ? provision(temporalCli, context)
      : prepareRemoteTemporal(access, progress),
    mongodbUri === undefined ? provision(mongod, context) : checkRemoteMongo(mongodbUri),
  ]);
  if (temporalAddress !== undefined) progress.line('Temporal: TEMPORAL_ADDRESS, nothing started');
  if (mongodbUri !== undefined) progress.line('MongoDB: MONGODB_URI, nothing started');
  return { temporal: temporal?.path, mongod: mongo?.path };
}

interface Watch {
  onChange(change: PartChange<PartName>): void;
  /** Rejects once a part has died too often before all was ready. */
  hopeless: Promise<never>;
  markReady(): void;
}

/** Keeps stack.json current and tells each change of a part in one line. */
function watchParts(
  config: StackConfig,
  state: StackState,
  progress: Progress,
  signal: AbortSignal,
): Watch {
  const deaths = new Map<PartName, number>();
  let isReady = false;
  let giveUp: (failure: StackFailure) => void = () => {};
  const hopeless = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  hopeless.catch(() => {});
  return {
    hopeless,
    markReady: () => {
      isReady = true;
    },
    onChange({ part, pid, what, reason, retryInMs }) {
      state[part].pid = pid;
      try {
        writeState(config.dataDir, state);
      } catch (error) {
        // A fault such as a full disk does not stop the parts that run.
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
      giveUp(new StackFailure(`${part} does not stay up. The end of ${log}:\n${lastLines(log)}`));
    },
  };
}

async function untilReady(
  supervisor: Supervisor,
  watch: Watch,
  config: StackConfig,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  await progress.during('Starting', async (task) => {
    task.say('Temporal and MongoDB');
    await supervisor.start();
    const probes = [
      { name: 'api', url: `http://${LOOPBACK}:${config.port}/readyz` },
      { name: 'sandbox bank', url: `http://${LOOPBACK}:${config.sandboxBankPort}/healthz` },
    ];
    const waitAbort = new AbortController();
    const either = AbortSignal.any([signal, waitAbort.signal]);
    try {
      await Promise.race([waitUntilReady(probes, READY_MS_MAX, task, either), watch.hopeless]);
    } finally {
      waitAbort.abort();
    }
  });
}

const LIVE_LINES = [
  'Live banks are served: no demo account is made, and no key printed.',
  'An account: npm run -s cli -- account create --name NAME',
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
  // The timer keeps the process alive where every server was given by address.
  while (!signal.aborted) await sleep(60_000, undefined, { signal }).catch(() => {});
}

function boundLogs(config: StackConfig): void {
  for (const part of PART_NAMES) boundLog(logFile(config, part));
}
