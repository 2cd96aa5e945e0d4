import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { WebhookDeliveryInput } from '../domain/delivery';
import { type DeliveryStatus, webhookWorkflowId } from '../domain/event';
import { environmentQueue } from '../domain/task-queues';
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

const NOT_SENT = new Set<DeliveryStatus>(['no_endpoint', 'not_subscribed']);

/**
 * Starts the delivery of each event that has somewhere to go. Safe to repeat: the workflow's id is
 * the event's, and an event that has been told of is not told again.
 */
export async function startDeliveries(
  starter: DeliveryStarter,
  events: readonly EventDocument[],
): Promise<void> {
  const due = events.filter(({ delivery }) => !NOT_SENT.has(delivery.status));
  const once = { workflowIdReusePolicy: 'REJECT_DUPLICATE' } as const;
  await Promise.all(due.map((event) => unlessStarted(start(starter, event, { run: 0 }, once))));
}

/**
 * Starts a delivery under the run number that the event carries, in the place of one that runs.
 * @param resume whether attempts of that run count that were made already
 */
export async function startInstead(
  starter: DeliveryStarter,
  event: EventDocument,
  { resume }: { resume: boolean },
): Promise<void> {
  const { run } = event.delivery;
  await start(starter, event, resume ? { run, resume } : { run }, {
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'TERMINATE_EXISTING',
  });
}

/** Starts a forgotten delivery, which goes on after its last attempt; one that runs is left alone. */
export async function resumeDelivery(
  starter: DeliveryStarter,
  event: EventDocument,
): Promise<void> {
  const input = { run: event.delivery.run, resume: true } as const;
  const again = { workflowIdReusePolicy: 'ALLOW_DUPLICATE' } as const;
  await unlessStarted(start(starter, event, input, again));
}

async function start(
  { temporal, webhookQueue, eager = false }: DeliveryStarter,
  event: EventDocument,
  input: Pick<WebhookDeliveryInput, 'run' | 'resume'>,
  policy: Pick<WorkflowStartOptions, 'workflowIdReusePolicy' | 'workflowIdConflictPolicy'>,
): Promise<void> {
  await temporal.workflow.start('webhookDelivery', {
    workflowId: webhookWorkflowId(event._id),
    taskQueue: environmentQueue(webhookQueue, event.livemode),
    args: [inputOf(event, input)],
    requestEagerStart: eager,
    ...policy,
    ...webhookLabels(event),
  });
}

function inputOf(
  { _id, request_id, account_id, livemode, type, body }: EventDocument,
  input: Pick<WebhookDeliveryInput, 'run' | 'resume'>,
): WebhookDeliveryInput {
  return { event_id: _id, request_id, ...input, event: { account_id, livemode, type, body } };
}

async function unlessStarted(starting: Promise<void>): Promise<void> {
  try {
    await starting;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
