import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { Db } from 'mongodb';
import { LIFECYCLE_QUEUE } from '../../src/domain/task-queues';
import { LIFECYCLES } from '../../src/lifecycles';
import type { PaymentDocument } from '../../src/store/payments';
import { lifecycleLabels } from '../../src/temporal/labels';
import { nextRun } from '../../src/temporal/start';
import { inLoops } from '../measure/load';
import { buildPayment } from '../product/documents';

const BATCH = 2_000;
const CONCURRENCY = 50;
const EXPIRES_MS = 24 * 60 * 60_000;
/** Workflows that the worker begins: a few more than it caches, since beginning them takes time. */
const BEGUN_MAX = 1_200;
/** Delay of the others' first task: to the server it is a timer, as of a workflow that waits. */
const DELAY = '1 day';
/** Workflows that are read to learn whether all have begun. */
const SAMPLE = 100;
const POLL_MS = 1_000;
/** Events of a workflow whose first task is complete. */
const FIRST_TASK = 4;

interface WaitingDeps {
  db: Db;
  temporal: Client;
  signal: AbortSignal;
}

/** Those that already wait, and those that shall. */
interface WaitingRange {
  from?: number;
  total: number;
}

/**
 * Stores payments that wait for their customers, and starts their workflows as `orphan restart`
 * does, since creating each through the API takes hours.
 * @returns number of workflows that the worker has begun
 */
export async function startWaiting(
  { db, temporal, signal }: WaitingDeps,
  range: WaitingRange,
  say: (detail: string) => void,
): Promise<number> {
  const { total } = range;
  const begun: string[] = [];
  for await (const { from, payments } of insertWaiting(db, range)) {
    const count = payments.length;
    await inLoops({ count, concurrency: CONCURRENCY, signal }, async (n) => {
      const payment = payments[n];
      if (payment === undefined) return;
      const isBegun = from + n < BEGUN_MAX;
      const options = {
        ...nextRun('payment', payment, LIFECYCLE_QUEUE, `bench-${randomUUID()}`),
        // With its version, as a first run has it: `reconcile` would read the history of others.
        ...lifecycleLabels('payment', payment, payment),
      };
      await temporal.workflow.start(LIFECYCLES.payment.workflowType, {
        ...options,
        ...(isBegun ? {} : { startDelay: DELAY }),
      });
      if (isBegun) begun.push(options.workflowId);
    });
    say(`${from + count} workflows started`);
  }
  for (const workflowId of begun.slice(-SAMPLE)) {
    while (!(await hasBegun(temporal, workflowId))) {
      say(`${total} workflows started, waiting for the last ones to begin`);
      await sleep(POLL_MS, undefined, { signal });
    }
  }
  return begun.length;
}

/** Stores payments that wait for their customers, and yields each batch. */
export async function* insertWaiting(
  db: Db,
  { from: first = 0, total }: WaitingRange,
): AsyncGenerator<{ from: number; payments: PaymentDocument[] }> {
  for (let from = first; from < total; from += BATCH) {
    const length = Math.min(BATCH, total - from);
    const payments = Array.from({ length }, (_, n) => buildWaitingPayment(from + n));
    await db.collection<PaymentDocument>('payments').insertMany(payments, { ordered: false });
    yield { from, payments };
  }
}

function buildWaitingPayment(n: number): PaymentDocument {
  const now = Date.now();
  // A millisecond each, since list positions within one may collide.
  const created_at = new Date(now + n).toISOString();
  return buildPayment({
    ...{
      account_id: `acct_bench_${n % 100}`,
      created_at,
      status: 'awaiting_customer',
      version: 2,
      transition: 2,
    },
    ...{ authorized_at: null, settled_at: null },
    expires_at: new Date(now + EXPIRES_MS).toISOString(),
  });
}

async function hasBegun(temporal: Client, workflowId: string): Promise<boolean> {
  try {
    const { historyLength } = await temporal.workflow.getHandle(workflowId).describe();
    return historyLength >= FIRST_TASK;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
