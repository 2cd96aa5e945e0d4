import { Client, Connection } from '@temporalio/client';
import { eventId } from '../../src/base/ids';
import { connectMongo } from '../../src/base/mongo';
import {
  PAYMENT_EVENTS,
  PAYMENT_TRANSITIONS,
  type PaymentStatus,
} from '../../src/domain/payment/payment';
import type { WebhookEvent } from '../../src/domain/webhook/event';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { DeliveryRow } from '../../src/store/deliveries';
import type { EventDocument } from '../../src/store/events';
import type { PaymentDocument } from '../../src/store/payments';
import type { RunningStack } from './running-stack';

export type Books = Awaited<ReturnType<typeof openBooks>>;

/** Reads the stack's own MongoDB and Temporal, past the service. */
export async function openBooks(stack: RunningStack) {
  const state = stack.state();
  if (state === undefined) throw new Error('stack.json is missing while the stack runs.');
  const mongo = await connectMongo(state.mongodb.uri, 'chaos-test');
  const db = mongo.db(state.settings.MONGODB_DB);
  const payments = db.collection<PaymentDocument>('payments');
  const events = db.collection<EventDocument>('events');
  const { address, namespace } = state.temporal;
  const connection = await Connection.connect({ address });
  const { workflow } = new Client({ connection, namespace });
  return {
    payments: () => payments.find().toArray(),
    events: () => events.find().toArray(),
    /** Ids of events whose delivery is not recorded. */
    undelivered: async (): Promise<string[]> => {
      const stored = db.collection<DeliveryRow>('deliveries').find({ status: 'delivered' });
      const delivered = new Set((await stored.toArray()).map(({ event_id }) => event_id));
      const ids = (await events.find().toArray()).map(({ _id }) => _id);
      return ids.filter((id) => !delivered.has(id));
    },
    /** Callbacks that nobody could place. */
    parked: () =>
      db.collection<CallbackDocument>('bank_callbacks').countDocuments({ parked: { $ne: null } }),
    /** Ids of the workflows that fit a visibility query. */
    workflows: async (query: string): Promise<string[]> => {
      const ids: string[] = [];
      for await (const { workflowId } of workflow.list({ query })) ids.push(workflowId);
      return ids;
    },
    close: async () => {
      await Promise.all([mongo.close(), connection.close()]);
    },
  };
}

/**
 * Faults of the events of one payment: they must be its transitions, each once and in order,
 * from `created` to the state it is in, one per transition.
 */
export function findEventFaults(payment: PaymentDocument, all: readonly EventDocument[]): string[] {
  const ids = Array.from({ length: payment.transition - 1 }, (_, index) =>
    eventId('payment', payment._id, index + 2),
  );
  const own = all.filter((event) => event.resource_id === payment._id);
  const faults = own.filter(({ _id }) => !ids.includes(_id)).map(({ _id }) => `${_id} is extra`);
  let status: PaymentStatus = 'created';
  for (const [index, id] of ids.entries()) {
    const event = own.find(({ _id }) => _id === id);
    const next: PaymentStatus | undefined = nextStatus(status, event?.type);
    if (next === undefined) {
      faults.push(`transition ${index + 2}: ${event?.type ?? 'no event'} after ${status}`);
    } else status = next;
  }
  if (status !== payment.status) faults.push(`is ${payment.status}; its events end at ${status}`);
  return faults.map((fault) => `payment ${payment._id}: ${fault}`);
}

function nextStatus(
  status: PaymentStatus,
  type: WebhookEvent['type'] | undefined,
): PaymentStatus | undefined {
  const lawful: readonly PaymentStatus[] = PAYMENT_TRANSITIONS[status];
  return lawful.find((next) => type !== undefined && PAYMENT_EVENTS[next] === type);
}
