import type { Client } from '@temporalio/client';
import type { Db } from 'mongodb';
import { webhookWorkflowId } from '../domain/event';
import { WEBHOOK_QUEUE } from '../domain/task-queues';
import type { Stores } from '../store';
import type { EventDocument } from '../store/events';
import { startDeliveries } from '../temporal/deliveries';
import { isAlreadyStarted, statusOf } from './temporal-call';

export interface ForgottenDeps {
  db: Db;
  stores: Pick<Stores, 'events'>;
  temporal: Client;
  now: () => Date;
  /** Task queue; tests have their own. */
  webhookQueue?: string;
}

/** Event that still has to reach its endpoint, while no workflow of its delivery runs. */
export interface Forgotten {
  event: EventDocument;
  /** End of the delivery's last run, such as `COMPLETED`; `NOT_FOUND` when the server knows none. */
  workflow: string;
}

/** Walks over every event that is pending, the oldest first. */
export async function* findForgotten({
  db,
  stores,
  temporal,
}: ForgottenDeps): AsyncGenerator<Forgotten> {
  const pending = db.collection<EventDocument>('events').find({ 'delivery.status': 'pending' });
  for await (const event of pending) {
    const workflow = await statusOf(temporal, webhookWorkflowId(event._id));
    if (workflow === 'RUNNING') continue;
    // It may have been delivered since it was read.
    const now = await stores.events.get(event._id);
    if (now?.delivery.status === 'pending') yield { event: now, workflow };
  }
}

/** Starts its delivery again, as its next run; one that runs meanwhile is left alone. */
export async function deliverAgain(deps: ForgottenDeps, { event }: Forgotten): Promise<void> {
  const { _id, delivery } = event;
  const claimed = await deps.stores.events.claimRun(_id, delivery.run, deps.now().toISOString());
  if (claimed === null) return;
  const { temporal, webhookQueue = WEBHOOK_QUEUE } = deps;
  const run = { number: claimed.delivery.run, again: true };
  try {
    await startDeliveries({ temporal, webhookQueue }, [claimed], run);
  } catch (error) {
    if (!isAlreadyStarted(error)) throw error;
  }
}
