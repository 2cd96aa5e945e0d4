import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { z } from 'zod';
import type { CallbackResource } from '../../src/domain/banks/callback';
import { webhookWorkflowId } from '../../src/domain/events/event';
import { LIFECYCLE_QUEUE, WEBHOOK_QUEUE } from '../../src/domain/task-queues';
import { LIFECYCLES } from '../../src/lifecycles';
import { startDeliveries } from '../../src/service/events/deliveries';
import { createStores } from '../../src/store';
import type { Flow } from '../measure/load';
import type { Delivery, Subject } from '../subject';
import { createApi, type Merchant } from './api';
import { type BankKey, createBank } from './bank';
import { addDeliveries, buildSettledEvents } from './documents';
import { PAYMENT, PAYOUT, RECIPIENT } from './requests';

const Created = z.object({ id: z.uuid(), status: z.string().optional() });

export interface ProductDeps {
  url: string;
  merchant: Merchant;
  /** Signs the bank's callbacks. */
  bankKey: BankKey;
  db: Db;
  temporal: Client;
  concurrency: number;
}

export interface Product extends Subject {
  refunds(paymentIds: readonly string[]): Flow;
  payouts(): Promise<Flow>;
  /** Events of another account, each for its first endpoints. */
  prepareEvents(account_id: string, count: number, endpoints: number): Promise<Delivery[]>;
  slowCreates(): SlowCreates;
}

interface SlowCreates {
  /** Creates repeated with the same key, since the response was a 503 or a 409. */
  repeated: number;
  /** Payments answered `created`, since the bank had not opened its session within 4 s. */
  without_session: number;
}

export function createProduct({
  url,
  merchant,
  bankKey,
  db,
  temporal,
  concurrency,
}: ProductDeps): Product {
  const api = createApi(url, merchant.apiKey, concurrency);
  const stores = createStores(db);
  const bank = createBank(url, bankKey, concurrency);
  const slow = { without_session: 0 };

  const create = async (path: string, body: unknown) => Created.parse(await api.create(path, body));
  const prepareEvents = async (account_id: string, count: number, endpoints: number) => {
    const starter = { temporal, webhookQueue: WEBHOOK_QUEUE };
    const targets = (await stores.endpoints.list(account_id, false)).slice(0, endpoints);
    const events = buildSettledEvents(account_id, count);
    const recorded = addDeliveries(
      events,
      targets.map(({ endpoint_id }) => endpoint_id),
    );
    await stores.events.insert(events);
    await stores.deliveries.insert(recorded.deliveries);
    return events.map((event) => ({
      id: event.resource_id,
      workflowId: webhookWorkflowId(event._id),
      start: () => startDeliveries(starter, { ...recorded, events: [event] }),
    }));
  };
  const buildFlow = (resource: CallbackResource, flow: Omit<Flow, 'report' | 'workflowIds'>) => ({
    ...flow,
    report: (id: string, transition: string) => bank.report(resource, id, transition),
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
    prepareDeliveries: (count) => prepareEvents(merchant.account_id, count, 1),
    prepareEvents,
    slowCreates: () => ({ repeated: api.retries.count, ...slow }),
    taskQueues: [LIFECYCLE_QUEUE, WEBHOOK_QUEUE],
    close: async () => {
      await bank.close();
      await api.close();
    },
  };
}
