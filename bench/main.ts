import '../stack/node-version';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StackFailure } from '../src/os/failure';
import { failureLine, showProgress } from '../stack/terminal';
import { runBench } from './bench';
import { reportBook } from './book/report';
import { runBookBench } from './book/run';
import { reportDashboard } from './dashboard/report';
import { runDashboardBench } from './dashboard/run';
import { reportIsolation, runIsolation } from './isolation/run';
import { reportLedger, runLedgerBench } from './ledger/run';
import { reportLists } from './lists/report';
import { runListsBench } from './lists/run';
import { type BenchOptions, readOptions, USAGE } from './options';
import { reportOverload } from './overload/report';
import { runOverload } from './overload/run';
import { report } from './report';
import { jsonOf, writeJson } from './result';
import type { Setting } from './servers';
import { onInterrupt } from './stop';
import { reportWaiting, runWaitingBench } from './waiting/run';

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const progress = showProgress(process.stderr);
  const stop = new AbortController();
  const interrupt = onInterrupt((why) => {
    progress.line(`${why}: stopping everything`);
    stop.abort();
  });
  const broken = onceBroken(stop.signal);
  const dir = mkdtempSync(join(tmpdir(), 'durable-payments-bench-'));
  try {
    const setting = { dir, env: process.env, progress, signal: stop.signal };
    process.stdout.write(await measured(options, setting, broken));
    return 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    interrupt.dispose();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Measures what is asked for, and writes the figures. */
async function measured(
  { json, instead, isolation, overload, ...options }: BenchOptions,
  setting: Setting,
  broken: Promise<never>,
): Promise<string> {
  const { ledger, book, lists, waiting, dashboard } = instead;
  if (ledger !== undefined) {
    const figures = await runLedgerBench(ledger, setting, broken);
    return json ? writeJson(figures) : reportLedger(figures);
  }
  if (book !== undefined) {
    const size = { payments: book, slots: options.concurrency };
    const figures = await runBookBench(size, setting, broken);
    return json ? writeJson(figures) : reportBook(figures);
  }
  if (lists !== undefined) {
    const figures = await runListsBench(lists, setting, broken);
    return json ? writeJson(figures) : reportLists(figures);
  }
  if (waiting !== undefined) {
    const figures = await runWaitingBench(waiting, setting, broken);
    return json ? writeJson(figures) : reportWaiting(figures);
  }
  if (dashboard !== undefined) {
    const figures = await runDashboardBench(dashboard, setting, broken);
    return json ? writeJson(figures) : reportDashboard(figures);
  }
  if (isolation) {
    const figures = await runIsolation(setting, broken);
    return json ? writeJson(figures) : reportIsolation(figures);
  }
  if (overload) {
    const figures = await runOverload(options.concurrency, setting, broken);
    return json ? writeJson(figures) : reportOverload(figures);
  }
  const result = await runBench(options, setting, broken);
  return json ? jsonOf(result) : report(result);
}

/**
 * Rejects on `stop`, or with the first error that nobody caught. The run then ends like any other
 * that failed, since its servers must not outlive it.
 */
function onceBroken(stop: AbortSignal): Promise<never> {
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
    // An error that is no StackFailure is a fault of ours, so its stack trace is shown.
    console.error(error instanceof StackFailure ? failureLine(error) : error);
    process.exit(1);
  },
);
