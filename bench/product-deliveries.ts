import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { eventsOf } from '../activities/events';
import { webhookWorkflowId } from '../src/domain/event';
import { WEBHOOK_QUEUE } from '../src/domain/task-queues';
import type { EventDocument } from '../src/store/events';
import { startDeliveries } from '../src/temporal/deliveries';
import type { Merchant } from './account';
import { type Delivery, TOLD_ALONE } from './subject';

interface DeliveryDeps {
  db: Db;
  temporal: Client;
  merchants: readonly Merchant[];
}

/** Writes events as a settlement would; each waits until it is started. */
export async function prepareDeliveries(
  { db, temporal, merchants }: DeliveryDeps,
  count: number,
): Promise<Delivery[]> {
  const starter = { temporal, webhookQueue: WEBHOOK_QUEUE };
  const events = Array.from({ length: count }, (_, n) => {
    const { account_id = '' } = merchants[n % merchants.length] ?? {};
    return eventOf(account_id, randomUUID());
  });
  await db.collection<EventDocument>('events').insertMany(events);
  return events.map((event) => ({
    paymentId: event.resource_id,
    workflowId: webhookWorkflowId(event._id),
    start: () => startDeliveries(starter, [event]),
  }));
}

function eventOf(account_id: string, payment_id: string): EventDocument {
  const about = { resource: 'payment', resource_id: payment_id, account_id } as const;
  const [event] = eventsOf(
    {
      ...about,
      livemode: false,
      at: new Date().toISOString(),
      data: { payment_id },
      request_id: payment_id,
      moves: [{ type: `payment.${TOLD_ALONE}`, version: 4 }],
    },
    'all',
  );
  if (event === undefined) throw new RangeError('A move has an event.');
  return event;
}
