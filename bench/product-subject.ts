import { randomUUID } from 'node:crypto';
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

const Answer = z.object({ id: z.uuid(), status: z.literal('awaiting_customer') });

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
  const { callbacks, payments } = createStores(db);
  const now = () => new Date();
  const contract = { callbacks, payments, temporal, lifecycleQueue: LIFECYCLE_QUEUE, now };
  return {
    name: 'product',
    async create() {
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: '/v1/payments',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify(PAYMENT),
      });
      const text = await body.text();
      if (statusCode !== 201) throw new Error(`POST /v1/payments answered ${statusCode}: ${text}`);
      return Answer.parse(JSON.parse(text)).id;
    },
    async callback(payment_id, name) {
      const occurred_at = now().toISOString();
      const callback = { callback_id: `cb_${randomUUID()}`, occurred_at };
      const about = { connector: SANDBOX, payment_id, name, callback };
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
