import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { environmentQueue } from '../../domain/task-queues';
import type { WebhookDeliveryInput } from '../../domain/webhook/delivery';
import { type DeliveryStatus, webhookWorkflowId } from '../../domain/webhook/event';
import { type DeliveryRow, getEventId } from '../../store/deliveries';
import { webhookLabels } from '../../temporal/labels';
import { retryNow } from '../../temporal/retry-now';
import { getShare } from '../../temporal/start';

export interface DeliveryStarter {
  temporal: Client;
  webhookQueue: string;
  /**
   * Requires that `temporal` shares its connection with a worker of that queue: the server then
   * returns the first task at once.
   */
  eager?: boolean;
}

const TRY_TIMEOUT_MS = 5_000;

const NOT_SENT = new Set<DeliveryStatus>(['no_endpoint', 'not_subscribed', 'disabled']);

/** Safe to repeat: event and endpoint fix the workflow id. */
export async function startDeliveries(starter: DeliveryStarter, events: readonly DeliveryRow[]) {
  const due = events.filter(({ delivery }) => !NOT_SENT.has(delivery.status));
  const firstStartPolicy = { workflowIdReusePolicy: 'REJECT_DUPLICATE' } as const;
  await Promise.all(
    due.map((event) => ignoreAlreadyStarted(start(starter, event, { run: 0 }, firstStartPolicy))),
  );
}

/** @param resume whether earlier attempts of that run count */
export async function replaceDelivery(
  starter: DeliveryStarter,
  event: DeliveryRow,
  { resume }: { resume: boolean },
): Promise<void> {
  const { run } = event.delivery;
  await start(starter, event, resume ? { run, resume } : { run }, {
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'TERMINATE_EXISTING',
  });
}

/** Restarts a lost delivery after its last attempt. */
export async function resumeDelivery(starter: DeliveryStarter, event: DeliveryRow) {
  const input = { run: event.delivery.run, resume: true } as const;
  const restartPolicy = { workflowIdReusePolicy: 'ALLOW_DUPLICATE' } as const;
  await ignoreAlreadyStarted(start(starter, event, input, restartPolicy));
}

export function tryDeliveryNow(temporal: Client, id: string): Promise<boolean> {
  const deadline = Date.now() + TRY_TIMEOUT_MS;
  return temporal.withDeadline(deadline, () =>
    retryNow(temporal, webhookWorkflowId(id), 'deliverWebhook'),
  );
}

async function start(
  { temporal, webhookQueue, eager = false }: DeliveryStarter,
  event: DeliveryRow,
  input: Pick<WebhookDeliveryInput, 'run' | 'resume'>,
  policy: Pick<WorkflowStartOptions, 'workflowIdReusePolicy' | 'workflowIdConflictPolicy'>,
): Promise<void> {
  await temporal.workflow.start('webhookDelivery', {
    workflowId: webhookWorkflowId(event._id),
    taskQueue: environmentQueue(webhookQueue, event.livemode),
    args: [buildInput(event, input)],
    requestEagerStart: eager,
    priority: getShare(event),
    ...policy,
    ...webhookLabels(event),
  });
}

function buildInput(
  row: DeliveryRow,
  input: Pick<WebhookDeliveryInput, 'run' | 'resume'>,
): WebhookDeliveryInput {
  const { _id, event_id, request_id, account_id, livemode, type, body, delivery } = row;
  const { endpoint_id } = delivery;
  if (endpoint_id === undefined) throw new Error(`The event ${_id} has no endpoint.`);
  return {
    event_id: getEventId(row),
    ...(event_id === undefined ? {} : { delivery_id: _id }),
    endpoint_id,
    ...(row.data['test'] === true ? { attempts_max: 1 as const } : {}),
    ...{ request_id, ...input, event: { account_id, livemode, type, body } },
  };
}

async function ignoreAlreadyStarted(starting: Promise<void>): Promise<void> {
  try {
    await starting;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
