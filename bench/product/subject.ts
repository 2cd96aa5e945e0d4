import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { z } from 'zod';
import { deliverCallback } from '../../src/callbacks/deliver';
import { createCallbackMemory } from '../../src/callbacks/memory';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { LIFECYCLE_QUEUE, WEBHOOK_QUEUE } from '../../src/domain/task-queues';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { LIFECYCLES } from '../../src/lifecycles';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { startDeliveries } from '../../src/service/events/deliveries';
import { createStores } from '../../src/store';
import type { Flow } from '../measure/load';
import type { Subject } from '../subject';
import { createApi, type Merchant } from './api';
import { addDeliveries, buildSettledEvents } from './documents';
import { PAYMENT, PAYOUT, RECIPIENT } from './requests';

const Created = z.object({ id: z.uuid(), status: z.string().optional() });

export interface ProductDeps {
  url: string;
  merchant: Merchant;
  db: Db;
  temporal: Client;
  concurrency: number;
}

export interface Product extends Subject {
  refunds(paymentIds: readonly string[]): Flow;
  payouts(): Promise<Flow>;
  slowCreates(): SlowCreates;
}

interface SlowCreates {
  /** Creates repeated with the same key, since the response was a 503 or a 409. */
  repeated: number;
  /** Payments answered `created`, since the bank had not opened its session within 4 s. */
  without_session: number;
}

export function createProduct({ url, merchant, db, temporal, concurrency }: ProductDeps): Product {
  const api = createApi(url, merchant.apiKey, concurrency);
  const stores = createStores(db);
  const now = () => new Date();
  // As in a bank's process, which knows the payments that it opened.
  const memory = createCallbackMemory(stores.callbacks, {
    warn: (_fields, text) => console.warn(text),
  });
  const deps = { stores, temporal, lifecycleQueue: LIFECYCLE_QUEUE, memory, now };
  const slow = { without_session: 0 };

  const create = async (path: string, body: unknown) => Created.parse(await api.create(path, body));
  const report = async (resource: CallbackResource, resource_id: string, transition: string) => {
    const name = LIFECYCLES[resource].callbacks.find((callback) => callback === transition);
    if (name === undefined) throw new Error(`No bank reports ${resource}.${transition}.`);
    const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: now().toISOString() };
    const about = { connector: SANDBOX_CONNECTOR, resource, resource_id, name, callback };
    const receipt = await deliverCallback(deps, about);
    if (receipt !== 'delivered') throw new Error(`callback ${name}: ${receipt}`);
  };
  const buildFlow = (resource: CallbackResource, flow: Omit<Flow, 'report' | 'workflowIds'>) => ({
    ...flow,
    report: (id: string, transition: string) => report(resource, id, transition),
    workflowIds: (id: string, eventIds: readonly string[]) => [
      LIFECYCLES[resource].workflowId(id),
      ...eventIds.map(webhookWorkflowId),
    ],
  });

  return {
    name: 'product',
    payments: buildFlow('payment', {
      create: async () => {
        const { id, status } = await create('/v1/payments', PAYMENT);
        if (status === 'created') slow.without_session += 1;
        memory.rememberConnector('payment', id, SANDBOX_CONNECTOR);
        return id;
      },
      webhooks: { before: [], after: ['awaiting_customer'] },
      reported: ['authorized', 'settled'],
    }),
    refunds: (paymentIds) => {
      const left = [...paymentIds];
      return buildFlow('refund', {
        create: async () => {
          const body = { payment_id: left.pop(), reason: 'changed mind' };
          return (await create('/v1/refunds', body)).id;
        },
        webhooks: { before: [], after: [] },
        reported: ['settled'],
      });
    },
    payouts: async () => {
      const recipient_id = (await create('/v1/payout-recipients', RECIPIENT)).id;
      return buildFlow('payout', {
        create: async () => (await create('/v1/payouts', { ...PAYOUT, recipient_id })).id,
        webhooks: { before: ['submitted', 'sent'], after: [] },
        reported: ['completed'],
      });
    },
    prepareDeliveries: async (count) => {
      const starter = { temporal, webhookQueue: WEBHOOK_QUEUE };
      const { account_id } = merchant;
      const endpoint = await stores.endpoints.get(account_id, false);
      const events = buildSettledEvents(account_id, count);
      const { deliveries } = addDeliveries(events, endpoint?.endpoint_id);
      await stores.events.insert(events);
      await stores.deliveries.insert(deliveries);
      return events.map((event) => ({
        id: event.resource_id,
        workflowId: webhookWorkflowId(event._id),
        start: () => startDeliveries(starter, { events: [event], deliveries }),
      }));
    },
    slowCreates: () => ({ repeated: api.retries.count, ...slow }),
    taskQueues: [LIFECYCLE_QUEUE, WEBHOOK_QUEUE],
    close: async () => {
      await memory.close();
      await api.close();
    },
  };
}
