import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { webhookWorkflowId } from '../domain/event';
import type { EventDocument } from '../store/events';
import { webhookLabels } from './labels';

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
