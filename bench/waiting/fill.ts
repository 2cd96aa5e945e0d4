import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { Db } from 'mongodb';
import { LIFECYCLE_QUEUE } from '../../src/domain/task-queues';
import { LIFECYCLES } from '../../src/lifecycles';
import type { PaymentDocument } from '../../src/store/payments';
import { nextRun } from '../../src/temporal/start';
import { paymentAt } from '../lists/fill';
import { inLoops } from '../load';

const BATCH = 2_000;
const STARTED_AT_ONCE = 50;
const EXPIRES_MS = 24 * 60 * 60_000;
/** Workflows that a worker begins: a few more than it remembers, since the fill waits for them. */
const BEGUN_MAX = 1_200;
/** Delay of the others' first task: the server keeps a timer of each, as of one that waits. */
const DELAY = '1 day';
/** Workflows that are looked at to learn whether all have begun to wait. */
const SAMPLE = 100;
const POLL_MS = 1_000;
/** Events of a workflow whose first task has been done. */
const FIRST_TASK = 4;

interface FillDeps {
  db: Db;
  temporal: Client;
  signal: AbortSignal;
}

/**
 * Lets payments wait for their customers. Each has its document, and a workflow that was started as
 * `orphan restart` starts it, since making each through the API takes hours.
 * @returns number of workflows that the worker has begun
 */
export async function fillWaiting(
  { db, temporal, signal }: FillDeps,
  total: number,
  say: (detail: string) => void,
): Promise<number> {
  const collection = db.collection<PaymentDocument>('payments');
  const begun: string[] = [];
  for (let from = 0; from < total; from += BATCH) {
    const count = Math.min(BATCH, total - from);
    const payments = Array.from({ length: count }, (_, n) => waitingPayment(from + n));
    await collection.insertMany(payments, { ordered: false });
    await inLoops({ count, concurrency: STARTED_AT_ONCE, signal }, async (n) => {
      const payment = payments[n];
      if (payment === undefined) return;
      const isBegun = from + n < BEGUN_MAX;
      const options = nextRun('payment', payment, LIFECYCLE_QUEUE, `bench-${randomUUID()}`);
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

function waitingPayment(n: number): PaymentDocument {
  const now = Date.now();
  const at = new Date(now).toISOString();
  return {
    ...paymentAt(n, at),
    ...{ status: 'awaiting_customer', version: 2, authorized_at: null, settled_at: null },
    expires_at: new Date(now + EXPIRES_MS).toISOString(),
  };
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
