import { randomInt } from 'node:crypto';
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { positionOf } from '../src/domain/cursor';
import { type EventType, webhookWorkflowId } from '../src/domain/event';
import { eventId } from '../src/ids';
import type { Stores } from '../src/store';
import type { EventDocument } from '../src/store/events';
import { webhookLabels } from '../src/temporal/labels';

/** Moves made at once, as their events tell of them. */
export interface EventSource {
  resource: 'payment' | 'refund' | 'payout';
  resource_id: string;
  account_id: string;
  livemode: boolean;
  /** ISO 8601, ms. */
  at: string;
  data: Record<string, string>;
  request_id: string;
  /** In order; `version` is the resource's after the move. */
  moves: readonly { type: EventType; version: number }[];
}

const TIES = 1_000_000;

/** A random place among the rows of one millisecond; later rows of one write come after it. */
export function positionAt(at: string, offset: number, base: number): string {
  return positionOf(Date.parse(at), (base + offset) % TIES);
}

export function tieBase(room: number): number {
  return randomInt(TIES - room);
}

/** The event documents of moves; each body is frozen here. @see spec §2.8 */
export function eventsOf(source: EventSource, hasEndpoint: boolean): EventDocument[] {
  const { account_id, livemode, at, data, request_id, resource, resource_id } = source;
  const base = tieBase(source.moves.length);
  return source.moves.map(({ type, version }, offset) => {
    const id = eventId(resource, resource_id, version);
    return {
      _id: id,
      account_id,
      livemode,
      type,
      created: at,
      resource_id,
      position: positionAt(at, offset, base),
      data,
      body: JSON.stringify({ id, type, created: at, livemode, data }),
      request_id,
      delivery: {
        status: hasEndpoint ? 'pending' : 'no_endpoint',
        attempts: 0,
        next_attempt_at: hasEndpoint ? at : null,
        run: 0,
      },
    };
  });
}

export interface DeliveryStarter {
  temporal: Client;
  webhookQueue: string;
  /**
   * Only where `temporal` shares its connection with a worker of that queue: the server then hands
   * the first task straight back, which spares it a dispatch.
   */
  eager?: boolean;
}

/**
 * Starts the delivery of each event that has somewhere to go. Safe to repeat: the workflow's id is
 * the event's, and an event that has been told of is not told again.
 */
export async function startDeliveries(
  { temporal, webhookQueue, eager = false }: DeliveryStarter,
  events: readonly EventDocument[],
  run: { number: number; again: boolean } = { number: 0, again: false },
): Promise<void> {
  const due = events.filter((event) => event.delivery.status !== 'no_endpoint');
  await Promise.all(
    due.map(async (event) => {
      try {
        await temporal.workflow.start('webhookDelivery', {
          workflowId: webhookWorkflowId(event._id),
          taskQueue: webhookQueue,
          args: [{ event_id: event._id, run: run.number, request_id: event.request_id }],
          workflowIdReusePolicy: run.again ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
          requestEagerStart: eager,
          ...webhookLabels(event),
        });
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError) || run.again) throw error;
      }
    }),
  );
}

/** Whether events of this account and environment have somewhere to go now. */
export async function hasEndpoint(
  stores: Pick<Stores, 'endpoints'>,
  account_id: string,
  livemode: boolean,
): Promise<boolean> {
  return (await stores.endpoints.get(account_id, livemode)) !== null;
}
