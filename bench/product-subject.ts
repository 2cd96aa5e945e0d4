import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { z } from 'zod';
import {
  type CallbackName,
  type CallbackResource,
  PAYOUT_CALLBACKS,
  REFUND_CALLBACKS,
} from '../src/domain/callback';
import { webhookWorkflowId } from '../src/domain/event';
import { paymentWorkflowId } from '../src/domain/payment';
import { LIFECYCLE_QUEUE, WEBHOOK_QUEUE } from '../src/domain/task-queues';
import { SANDBOX_CONNECTOR } from '../src/routing';
import { createStores } from '../src/store';
import { deliverCallback } from '../src/temporal/bank-callbacks';
import { createCallbackMemory } from '../src/temporal/callback-memory';
import type { Merchant } from './account';
import type { Lifecycle, LifecycleName } from './lifecycles';
import { createProductApi } from './product-api';
import { prepareDeliveries } from './product-deliveries';
import type { Subject } from './subject';

const Created = z.object({ id: z.uuid(), status: z.string().optional() });

export interface ProductDeps {
  url: string;
  /** Merchants, who take turns; each has the receiver for its endpoint. */
  merchants: readonly Merchant[];
  db: Db;
  temporal: Client;
  concurrency: number;
}

export interface Product extends Subject {
  /** @param settled ids of payments that can be refunded, each once */
  lifecycles(settled: readonly string[]): Promise<Record<LifecycleName, Lifecycle>>;
}

/** The product as a merchant and a bank connector see it. */
export function createProduct({ url, merchants, db, temporal, concurrency }: ProductDeps): Product {
  const api = createProductApi(
    url,
    merchants.map(({ apiKey }) => apiKey),
    concurrency,
  );
  const stores = createStores(db);
  const { callbacks } = stores;
  const now = () => new Date();
  // As a bank's process, which knows the payments that it was asked for.
  const memory = createCallbackMemory(callbacks, { warn: (_fields, text) => console.warn(text) });
  const contract = { stores, temporal, lifecycleQueue: LIFECYCLE_QUEUE, memory, now };
  const report = async (resource: CallbackResource, resource_id: string, name: CallbackName) => {
    const occurred_at = now().toISOString();
    const callback = { callback_id: `cb_${randomUUID()}`, occurred_at };
    const about = { connector: SANDBOX_CONNECTOR, resource, resource_id, name, callback };
    const receipt = await deliverCallback(contract, about);
    if (receipt !== 'delivered') throw new Error(`callback ${name}: ${receipt}`);
  };
  const create = async (path: string, body: unknown): Promise<string> =>
    Created.parse(await api.create(path, body)).id;
  return {
    name: 'product',
    async create() {
      const { id, status } = Created.parse(await api.create('/v1/payments', PAYMENT));
      if (status === 'created') api.slow.answered_created += 1;
      memory.belongs('payment', id, SANDBOX_CONNECTOR);
      return id;
    },
    slowCreates: () => ({ ...api.slow }),
    deliveries: (count) => prepareDeliveries({ db, temporal, merchants }, count),
    callback: (paymentId, name) => report('payment', paymentId, name),
    workflowIds: (paymentId, eventIds) => [
      paymentWorkflowId(paymentId),
      ...eventIds.map(webhookWorkflowId),
    ],
    async lifecycles(settled) {
      const left = [...settled];
      const recipient_id = await create('/v1/payout-recipients', RECIPIENT);
      return {
        refunds: {
          name: 'refunds',
          create: () => create('/v1/refunds', { payment_id: left.pop(), reason: 'changed mind' }),
          told: [],
          reported: ['settled'],
          report: (id, move) => report('refund', id, nameOf(REFUND_CALLBACKS, move)),
        },
        payouts: {
          name: 'payouts',
          create: () => create('/v1/payouts', { ...PAYOUT, recipient_id }),
          told: ['submitted', 'sent'],
          reported: ['completed'],
          report: (id, move) => report('payout', id, nameOf(PAYOUT_CALLBACKS, move)),
        },
      };
    },
    taskQueues: [LIFECYCLE_QUEUE, WEBHOOK_QUEUE],
    close: async () => {
      await memory.close();
      await api.close();
    },
  };
}

function nameOf<Name extends string>(names: readonly Name[], move: string): Name {
  const found = names.find((name) => name === move);
  if (found === undefined) throw new Error(`No bank reports "${move}".`);
  return found;
}

/** An ordinary payment, with every field that merchants usually send. */
export const PAYMENT = {
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

const RECIPIENT = {
  type: 'bank_account',
  first_name: 'Jan',
  last_name: 'Jansen',
  iban: 'NL91ABNA0417164300',
  address_line1: 'Damrak 1',
  city: 'Amsterdam',
  postal_code: '1012 LG',
};

const PAYOUT = {
  method: 'sepa_instant',
  amount: 1050,
  currency: 'EUR',
  reference: 'winnings-1001',
  metadata: { game: '8812' },
};
