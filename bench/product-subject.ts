import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { Pool } from 'undici';
import { z } from 'zod';
import { deliverCallback } from '../connectors/contract/callbacks';
import { SANDBOX } from '../connectors/sandbox-bank/sender';
import { webhookWorkflowId } from '../src/domain/event';
import { paymentWorkflowId } from '../src/domain/payment';
import { LIFECYCLE_QUEUE, WEBHOOK_QUEUE } from '../src/domain/task-queues';
import { createStores } from '../src/store';
import type { Subject } from './subject';

const Answer = z.object({ id: z.uuid(), status: z.enum(['awaiting_customer', 'created']) });

/** Outcome unknown, or the first call still under way: the same key settles it. */
const REPEATABLE = new Set([409, 503]);
const REPEAT_MS = 1_000;
const ATTEMPTS_MAX = 10;

export interface ProductDeps {
  url: string;
  /** A sandbox key of the account whose endpoint is the receiver. */
  apiKey: string;
  db: Db;
  temporal: Client;
  concurrency: number;
}

/** The product as a merchant and a bank connector see it. */
export function createProduct({ url, apiKey, db, temporal, concurrency }: ProductDeps): Subject {
  const pool = new Pool(url, { connections: concurrency });
  const stores = createStores(db);
  const now = () => new Date();
  const slow = { asked_again: 0, answered_created: 0 };
  const contract = { stores, temporal, lifecycleQueue: LIFECYCLE_QUEUE, now };
  return {
    name: 'product',
    async create() {
      const idempotencyKey = randomUUID();
      for (let attempt = 1; ; attempt += 1) {
        const { status, text } = await postPayment(pool, apiKey, idempotencyKey);
        if (status === 201) {
          const payment = Answer.parse(JSON.parse(text));
          if (payment.status === 'created') slow.answered_created += 1;
          return payment.id;
        }
        if (!REPEATABLE.has(status) || attempt === ATTEMPTS_MAX) {
          throw new Error(`POST /v1/payments answered ${status}: ${text}`);
        }
        slow.asked_again += 1;
        await sleep(REPEAT_MS);
      }
    },
    slowCreates: () => ({ ...slow }),
    async callback(resource_id, name) {
      const occurred_at = now().toISOString();
      const callback = { callback_id: `cb_${randomUUID()}`, occurred_at };
      const about = {
        connector: SANDBOX,
        resource: 'payment',
        resource_id,
        name,
        callback,
      } as const;
      const receipt = await deliverCallback(contract, about);
      if (receipt !== 'delivered') throw new Error(`callback ${name}: ${receipt}`);
    },
    workflowIds: (paymentId, eventIds) => [
      paymentWorkflowId(paymentId),
      ...eventIds.map(webhookWorkflowId),
    ],
    taskQueues: [LIFECYCLE_QUEUE, WEBHOOK_QUEUE],
    close: () => pool.close(),
  };
}

async function postPayment(
  pool: Pool,
  apiKey: string,
  idempotencyKey: string,
): Promise<{ status: number; text: string }> {
  const { statusCode, body } = await pool.request({
    method: 'POST',
    path: '/v1/payments',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': idempotencyKey,
    },
    body: JSON.stringify(PAYMENT),
  });
  return { status: statusCode, text: await body.text() };
}

/** An ordinary payment, with every field that merchants usually send. */
const PAYMENT = {
  method: 'ideal',
  amount: 1050,
  currency: 'EUR',
  country: 'NL',
  success_url: 'https://shop.example/thanks',
  error_url: 'https://shop.example/sorry',
  reference: 'order-1001',
  customer: { email: 'jan@example.com', first_name: 'Jan', last_name: 'Jansen' },
  metadata: { cart: '8812', channel: 'web' },
};
