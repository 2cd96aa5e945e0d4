import '../stack/node-version';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OperationalError } from '../src/base/errors';
import { failureLine, showProgress } from '../stack/terminal';
import { runComparison } from './compare/run';
import { type Options, readOptions, type ScenarioName, USAGE } from './options';
import { formatJson, formatTable, type Report } from './report';
import { runEndpoints } from './scenarios/endpoints';
import { runIsolation } from './scenarios/isolation';
import { runNeighbors } from './scenarios/neighbors';
import { runOverload } from './scenarios/overload';
import type { Setting } from './servers/config';

const RUNNERS: Record<ScenarioName, (options: Options, setting: Setting) => Promise<Report>> = {
  floor: runComparison,
  overload: runOverload,
  isolation: runIsolation,
  neighbors: runNeighbors,
  endpoints: runEndpoints,
};

const PARENT_POLL_MS = 500;
const INTERRUPTED = 130;

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const progress = showProgress(process.stderr);
  const stop = new AbortController();
  onInterrupt((why) => {
    if (stop.signal.aborted) return;
    progress.line(`${why}: stopping everything`);
    stop.abort();
  });
  const dir = mkdtempSync(join(tmpdir(), 'durable-payments-bench-'));
  const { signal } = stop;
  const setting = { dir, env: process.env, progress, signal, broken: rejectWhenBroken(signal) };
  try {
    const report = await RUNNERS[options.scenario](options, setting);
    process.stdout.write(options.json ? formatJson(report) : `\n${formatTable(report)}`);
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    return INTERRUPTED;
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Calls `stop` on Ctrl-C, SIGTERM, or the end of `npm run bench`, since npm's shell does not pass
 * signals on.
 */
function onInterrupt(stop: (why: string) => void): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stop(name));
  // A run started by hand may outlive the shell that started it.
  if (process.env['npm_lifecycle_event'] !== 'bench') return;
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop('npm has ended');
  }, PARENT_POLL_MS);
}

/** Rejects on `stop`, or with the first uncaught error, so that no server outlives a failed run. */
function rejectWhenBroken(stop: AbortSignal): Promise<never> {
  const broken = new Promise<never>((_resolve, reject) => {
    stop.addEventListener('abort', () => reject(stop.reason));
    process.on('uncaughtException', reject);
    process.on('unhandledRejection', reject);
  });
  broken.catch(() => {});
  return broken;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error) => {
    // Any other error is a bug, so its stack trace is shown.
    console.error(error instanceof OperationalError ? failureLine(error) : error);
    process.exit(1);
  },
);
