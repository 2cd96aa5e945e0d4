import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { describeError, OperationalError } from '../src/base/errors';
import { PROGRAM } from '../src/base/program';
import { SAMPLE_PAYMENT } from '../src/domain/wire/samples';
import { ensureKeys } from '../src/encryption/ensure-keys';
import { createConnectors, listPayoutConnectors, SANDBOX_CONNECTOR } from '../src/routing';
import { waitUntilReady } from './child-process';
import type { StackConfig } from './config';
import {
  PART_NAMES,
  type PartName,
  readJson,
  replaceFile,
  type StackState,
  writeState,
} from './data-dir';
import { createLogCheck, lastLines } from './log-file';
import {
  childEnvironment,
  findServers,
  type Inspect,
  initialState,
  logFile,
  NODE_PART_NAMES,
  stackParts,
} from './parts';
import { LOOPBACK } from './ports';
import { runCommand } from './provision/command';
import { needSpace } from './provision/provision';
import { keepStatements } from './statements';
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
  try {
    writeState(config.dataDir, state);
    await untilReady(supervisor, watch.hopeless, config, progress, signal);
    if (inspect !== undefined) {
      progress.line(`A debugger can attach to ${inspect.part}: ${LOOPBACK}:${inspect.port}`);
    }
    statements = await keepStatements(config, keys, progress, signal);
    for (const line of await summary(config, state, env)) progress.line(line);
    watch.markReady();
    const restart = (part: PartName) => supervisor.restart(part);
    const names = parts.flat().map(({ name }) => name);
    const running = NODE_PART_NAMES.filter((name) => names.includes(name));
    if (request.watch) {
      await watchSources({ root: ROOT, parts: running, restart, progress, signal });
    }
    // The timer keeps the process alive if every server is external.
    while (!signal.aborted) await sleep(60_000, undefined, { signal }).catch(() => {});
  } finally {
    clearInterval(logCheck);
    await progress.during('Stopping', async () => {
      await statements?.stop();
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

/** @throws the reason of the signal, once nothing runs any more, if it comes before all has started */
async function untilReady(
  supervisor: Supervisor,
  hopeless: Promise<never>,
  config: StackConfig,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  await progress.during('Starting', async (task) => {
    task.say('Temporal and MongoDB');
    signal.throwIfAborted();
    const started = new AbortController();
    signal.addEventListener('abort', () => void supervisor.stop(), { signal: started.signal });
    await supervisor.start().finally(() => started.abort());
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

const CLI_MS_MAX = 60_000;
const CLI = join(__dirname, '..', 'src', 'cli', 'main.js');

const NewAccount = z.object({
  account_id: z.string(),
  sandbox_key: z.string(),
  live_key: z.string(),
  dashboard_email: z.string(),
  dashboard_password: z.string(),
});

/** Part of a new account that is stored, so that later starts print the same sample request. */
const StoredAccount = NewAccount.pick({
  account_id: true,
  sandbox_key: true,
  dashboard_email: true,
});
type StoredAccount = z.infer<typeof StoredAccount>;

/** Stores only the sandbox key, in `demo-account.json` (mode 0600). */
async function demoLines(
  dataDir: string,
  baseUrl: string,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const path = join(dataDir, 'demo-account.json');
  const storedAccount = readJson(path, StoredAccount);
  if (storedAccount !== undefined) {
    const { dashboard_email: email } = storedAccount;
    return [
      `Dashboard: ${baseUrl}/dashboard, e-mail ${email}. Is the password of the first start lost?`,
      `${PROGRAM.cli} dashboard reset-password ${email}`,
      '',
      ...sampleLines(storedAccount, baseUrl),
    ];
  }
  try {
    const create = ['account', 'create', '--name', 'Demo', '--keep-password', '--json'];
    const args = ['--enable-source-maps', CLI, ...create];
    const output = await runCommand(process.execPath, args, { env, timeoutMs: CLI_MS_MAX });
    const account = NewAccount.parse(JSON.parse(output));
    replaceFile(path, `${JSON.stringify(StoredAccount.parse(account), null, 2)}\n`);
    return [
      'Demo account, shown this once:',
      `  account        ${account.account_id}`,
      `  sandbox key    ${account.sandbox_key}`,
      `  live key       ${account.live_key}`,
      `  dashboard      ${baseUrl}/dashboard`,
      `    e-mail       ${account.dashboard_email}`,
      `    password     ${account.dashboard_password}`,
      '',
      ...sampleLines(account, baseUrl),
    ];
  } catch (error) {
    return [
      `The demo account could not be made: ${describeError(error)}`,
      `Try it by hand: ${PROGRAM.cli} account create --name Demo`,
    ];
  }
}

function sampleLines({ account_id, sandbox_key }: StoredAccount, baseUrl: string): string[] {
  const body = JSON.stringify(SAMPLE_PAYMENT);
  return [
    `Docs: ${baseUrl}/docs/`,
    '',
    'Make a payment (paste it):',
    `curl -sS ${baseUrl}/v1/payments -H 'Authorization: Bearer ${sandbox_key}'` +
      ` -H 'Content-Type: application/json' -H "Idempotency-Key: demo-$(date +%s)" -d '${body}'`,
    '',
    'Have its events sent to you:',
    `${PROGRAM.cli} webhook set ${account_id} --env sandbox` +
      ' --url http://localhost:9000/webhooks',
  ];
}
