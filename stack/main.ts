import './node-version';
import { resolve } from 'node:path';
import { OperationalError } from '../src/base/errors';
import { IS_CHECKOUT } from '../src/base/program';
import { decideConfig, readEnvironment } from './config';
import { endLeftovers, lockDataDir, markDataDir, removeState } from './data-dir';
import { launch } from './launch';
import { needPorts } from './ports';
import type { Supervisor } from './supervisor';
import { failureLine, showProgress } from './terminal';
import { readArguments, USAGE } from './usage';

const PARENT_POLL_MS = 500;
async function main(args: readonly string[]): Promise<number> {
  const { help, inspect, watch } = readArguments(args);
  if (help) {
    process.stdout.write(USAGE);
    return 0;
  }

  if (watch && !IS_CHECKOUT) {
    throw new OperationalError('--watch builds the sources, which only a checkout of them has.');
  }

  const progress = showProgress();
  const environment = readEnvironment(process.env);
  const dataDir = resolve(environment.DATA_DIR);
  const unlock = lockDataDir(dataDir);
  const stop = new AbortController();
  let supervisor: Supervisor | undefined;
  const stopListening = onStopRequest((count, why) => {
    if (count === 1) progress.line(`${why}: stopping everything`);
    stop.abort();
    if (count > 1) supervisor?.hurry();
  });
  let hasCrashed = false;
  process.on('uncaughtException', (error) => {
    console.error(error);
    hasCrashed = true;
    stop.abort();
  });
  try {
    markDataDir(dataDir);
    const ending = 'Ending what the last start left running';
    const ended = await progress.during(ending, () => endLeftovers(dataDir));
    if (ended.length > 0)
      progress.line(`Ended what the last start left running: ${ended.join(', ')}`);
    const config = await decideConfig(environment, process.env, progress);
    await needPorts({
      PORT: config.port,
      SANDBOX_BANK_PORT: config.sandboxBankPort,
      ...(inspect && { '--inspect': inspect.port }),
      ...(config.temporalAddress === undefined && { TEMPORAL_UI_PORT: config.temporalUiPort }),
    });
    await launch({
      config,
      env: process.env,
      inspect,
      watch,
      progress,
      signal: stop.signal,
      onSupervisor: (newSupervisor) => {
        supervisor = newSupervisor;
      },
    });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    stopListening();
    removeState(dataDir);
    unlock();
  }
  progress.line('stopped');
  return hasCrashed ? 1 : 0;
}

/** Time within which a signal is repeated: npm passes Ctrl-C on, and the terminal sends it too. */
const SAME_REQUEST_MS = 250;
const NPM_SCRIPTS: ReadonlySet<string> = new Set(['start', 'dev', 'npx']);

/**
 * Counts Ctrl-C, SIGTERM, and the end of the npm that started this process, since npm's shell does
 * not pass signals on.
 * @returns function that stops listening
 */
function onStopRequest(onRequest: (count: number, why: string) => void): () => void {
  let count = 0;
  let last = Number.NEGATIVE_INFINITY;
  const request = (why: string): void => {
    const since = performance.now() - last;
    last = performance.now();
    if (since > SAME_REQUEST_MS) onRequest(++count, why);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const names = { SIGINT: 'Ctrl-C', SIGTERM: 'SIGTERM', SIGHUP: 'The terminal was closed' };
  const listeners = signals.map((name) => {
    const listener = (): void => request(names[name]);
    process.on(name, listener);
    return () => process.off(name, listener);
  });

  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    request('npm has ended');
  }, PARENT_POLL_MS);
  if (!NPM_SCRIPTS.has(process.env['npm_lifecycle_event'] ?? '')) clearInterval(watch);

  return () => {
    clearInterval(watch);
    for (const unlisten of listeners) unlisten();
  };
}

// The stack keeps running when its output closes.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error) => {
    // Any other error is a bug, so its stack trace is shown.
    const text = error instanceof OperationalError ? failureLine(error) : error;
    console.error(text);
    process.exit(1);
  },
);
