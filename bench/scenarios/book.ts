import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Db, MongoClient } from 'mongodb';
import { z } from 'zod';
import { OperationalError } from '../../src/base/errors';
import { verifyLedger } from '../../src/ledger-check/verify';
import { createStores, ensureIndexes } from '../../src/store';
import type { EventDocument } from '../../src/store/events';
import type { PaymentDocument } from '../../src/store/payments';
import { type Child, startChild } from '../../stack/child-process';
import { lastLines } from '../../stack/log-file';
import { percentiles } from '../measure/statistics';
import type { Options } from '../options';
import { buildPayment, buildPaymentEvents } from '../product/documents';
import { buildRow, type Report } from '../report';
import type { Setting } from '../servers/config';
import { type Stack, withStack } from '../servers/stack';

const MANY = 100;
const BATCH = 1_000;
const GRACE_MS = 2_000;

/** Result that a worker prints, and the sum of all workers'. */
export const WorkerResult = z.object({
  settlements: z.number(),
  /** Transactions of settlements that had a write conflict and were repeated. */
  conflicts: z.number(),
  payouts: z.number(),
  /** Transactions of payouts that had one. */
  payout_conflicts: z.number(),
  /** Times from a payout's request to its acceptance. */
  payout_ms: z.array(z.number()),
  /** Payouts that were not accepted within their five seconds, though the balance suffices. */
  refused: z.number(),
  seconds: z.number(),
});
export type WorkerResult = z.infer<typeof WorkerResult>;

type Result = WorkerResult & { verifications: number; differences: number };

/**
 * Settles payments of one merchant, and as many of 100 merchants, without Temporal, with a payout
 * after every tenth, while `ledger verify --full` runs again and again.
 */
export async function runBook(options: Options, setting: Setting): Promise<Report> {
  return await withStack(setting, { parts: 'servers' }, async (stack) => {
    const settle = (name: string, merchants: number) =>
      setting.progress.during(name, () => settleAll(stack, { ...options, merchants }, setting));
    await settle('Warming up', MANY);
    const many = await settle(`${MANY} merchants`, MANY);
    const one = await settle('One merchant', 1);
    const names = ['settlements', 'conflicts', 'payouts', 'payout_conflicts', 'refused'] as const;
    const checks = ['verifications', 'differences'] as const;
    const rate = ({ settlements, seconds }: Result) => settlements / seconds;
    const readTimes = ({ payout_ms: times }: Result) =>
      times.length === 0 ? null : percentiles(times);
    return {
      columns: [`${MANY} merchants`, 'one merchant'],
      rows: [
        buildRow('settlements/s', rate(many), rate(one)),
        ...[...names, ...checks].map((name) => buildRow(name, many[name], one[name])),
        buildRow('payout accepted, ms', readTimes(many), readTimes(one)),
      ],
      notes: [`${options.bookWorkers} workers, each with ${options.concurrency} in flight`],
    };
  });
}

type Task = Pick<Options, 'payments' | 'concurrency' | 'bookWorkers'> & { merchants: number };

async function settleAll(
  { mongo, env, config }: Stack,
  { payments, concurrency, bookWorkers, merchants }: Task,
  setting: Setting,
): Promise<Result> {
  const name = `${config.mongodbDb}_book`;
  const db = mongo.db(name);
  const workers: Child[] = [];
  const logPath = (n: number) => join(setting.dir, `book-worker-${n}.log`);
  try {
    await ensureIndexes(createStores(db));
    await insertAuthorized(db, payments, merchants);
    for (let n = 0; n < bookWorkers; n += 1) {
      const load = { BENCH_WORKER: `${n}/${bookWorkers}`, BENCH_CONCURRENCY: `${concurrency}` };
      const worker = await startChild({
        name: `book worker ${n}`,
        command: process.execPath,
        args: [join(__dirname, 'book-worker.js')],
        env: { ...env, MONGODB_DB: name, ...load },
        logFile: logPath(n),
        graceMs: GRACE_MS,
      });
      workers.push(worker);
    }
    const checks = await verifyUntilDone(mongo, name, workers, setting.signal);
    const results = workers.map((worker, n) => readResult(worker, logPath(n)));
    return { ...addResults(await Promise.all(results)), ...checks };
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await db.dropDatabase();
  }
}

async function insertAuthorized(db: Db, count: number, merchants: number): Promise<void> {
  const accounts = Array.from({ length: merchants }, () => `acct_${randomUUID()}`);
  const began = Date.now() - count;
  const all = Array.from({ length: count }, (_, n) =>
    buildPayment({
      account_id: accounts[n % merchants] ?? '',
      // A millisecond each, since list positions within one may collide.
      created_at: new Date(began + n).toISOString(),
      ...{ status: 'authorized', version: 3, transition: 3, settled_at: null },
    }),
  );
  for (let from = 0; from < count; from += BATCH) {
    const payments = all.slice(from, from + BATCH);
    const events = payments.flatMap((payment) => buildPaymentEvents(payment));
    await db.collection<PaymentDocument>('payments').insertMany(payments);
    await db.collection<EventDocument>('events').insertMany(events);
  }
}

async function verifyUntilDone(
  mongo: MongoClient,
  database: string,
  workers: readonly Child[],
  signal: AbortSignal,
): Promise<Pick<Result, 'verifications' | 'differences'>> {
  const checks = { verifications: 0, differences: 0 };
  while (workers.some((worker) => !worker.hasExited())) {
    signal.throwIfAborted();
    const { differences_total } = await verifyLedger(mongo, database, { full: true });
    checks.verifications += 1;
    checks.differences += differences_total;
  }
  return checks;
}

/** @throws OperationalError with the end of the log, when the worker printed no result */
async function readResult(worker: Child, logFile: string): Promise<WorkerResult> {
  const [line = ''] = readFileSync(logFile, 'utf8').trim().split('\n').slice(-1);
  const result = line.startsWith('{') ? WorkerResult.safeParse(JSON.parse(line)) : undefined;
  if (result?.success) return result.data;
  throw new OperationalError(`${worker.name} ${await worker.exited}:\n${lastLines(logFile)}`);
}

/** Adds the results of workers up; the time is the longest, since they start together. */
function addResults(results: readonly WorkerResult[]): WorkerResult {
  return results.reduce((sum, result) => ({
    settlements: sum.settlements + result.settlements,
    conflicts: sum.conflicts + result.conflicts,
    payouts: sum.payouts + result.payouts,
    payout_conflicts: sum.payout_conflicts + result.payout_conflicts,
    payout_ms: [...sum.payout_ms, ...result.payout_ms],
    refused: sum.refused + result.refused,
    seconds: Math.max(sum.seconds, result.seconds),
  }));
}
