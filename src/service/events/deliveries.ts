import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  type DeliveryKey,
  type DeliveryTarget,
  REDELIVER,
  type WebhookDeliveryInput,
} from '../../domain/events/delivery';
import { webhookWorkflowId } from '../../domain/events/event';
import { environmentQueue } from '../../domain/task-queues';
import type { DeliveryRow } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import { getShare, updateWithStart, webhookLabels } from '../../temporal/start';
import { retryNow } from '../../temporal/status';

export interface DeliveryStarter {
  temporal: Client;
  webhookQueue: string;
  /**
   * Requires that `temporal` shares its connection with a worker of that queue: the server then
   * returns the first task at once.
   */
  eager?: boolean;
}

export interface RecordedEvents {
  events: readonly EventDocument[];
  deliveries: readonly DeliveryRow[];
}

const TRY_TIMEOUT_MS = 5_000;
const WORKFLOW = 'webhookDelivery';
const REUSED = 'ALLOW_DUPLICATE' as const;

/** Starts one workflow for each event with an endpoint. Safe to repeat: the event fixes its id. */
export async function startDeliveries(
  starter: DeliveryStarter,
  { events, deliveries }: RecordedEvents,
): Promise<void> {
  const start = async (event: EventDocument) => {
    const due = listPending(event, deliveries);
    const targets = due.map(({ endpoint_id, run }) => ({ endpoint_id, run }));
    await startUnlessRunning(starter, event, targets, 'REJECT_DUPLICATE');
  };
  await Promise.all(events.map(start));
}

/** Starts a lost workflow again, which continues after the last attempt to each endpoint. */
export async function resumeDeliveries(
  starter: DeliveryStarter,
  event: EventDocument,
  deliveries: readonly DeliveryRow[],
): Promise<void> {
  const lost = listPending(event, deliveries);
  const targets = lost.map(({ endpoint_id, run }) => ({ endpoint_id, run, resume: true as const }));
  await startUnlessRunning(starter, event, targets, REUSED);
}

/**
 * Delivers to one endpoint; deliveries to the others go on. An update needs a worker at once, so
 * only a workflow that runs gets one.
 */
export async function redeliver(
  starter: DeliveryStarter,
  event: EventDocument,
  { endpoint_id, run, resume }: DeliveryTarget,
): Promise<void> {
  const target: DeliveryTarget = { endpoint_id, run, ...(resume && { resume }) };
  if (await startUnlessRunning(starter, event, [target], REUSED)) return;
  const start = { ...buildStart(starter, event, [target]), workflowIdReusePolicy: REUSED };
  await updateWithStart(starter.temporal, WORKFLOW, REDELIVER, target, start);
}

/** @returns whether an attempt waited */
export function tryDeliveryNow(
  temporal: Client,
  { event_id, endpoint_id }: DeliveryKey,
): Promise<boolean> {
  const deadline = Date.now() + TRY_TIMEOUT_MS;
  return temporal.withDeadline(deadline, () =>
    retryNow(temporal, webhookWorkflowId(event_id), endpoint_id),
  );
}

function listPending({ _id }: EventDocument, deliveries: readonly DeliveryRow[]): DeliveryRow[] {
  return deliveries.filter(({ event_id, status }) => event_id === _id && status === 'pending');
}

/** @returns whether it was started */
async function startUnlessRunning(
  starter: DeliveryStarter,
  event: EventDocument,
  targets: DeliveryTarget[],
  workflowIdReusePolicy: 'REJECT_DUPLICATE' | typeof REUSED,
): Promise<boolean> {
  if (targets.length === 0) return false;
  try {
    await starter.temporal.workflow.start(WORKFLOW, {
      ...buildStart(starter, event, targets),
      requestEagerStart: starter.eager ?? false,
      workflowIdReusePolicy,
    });
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return false;
  }
}

function buildStart(
  { webhookQueue }: DeliveryStarter,
  event: EventDocument,
  endpoints: DeliveryTarget[],
) {
  const { _id: event_id, request_id, account_id, livemode, type, body } = event;
  const input: WebhookDeliveryInput = {
    ...{ event_id, request_id, event: { account_id, livemode, type, body } },
    ...(event.data['test'] === true ? { attempts_max: 1 } : {}),
    endpoints,
  };
  return {
    workflowId: webhookWorkflowId(event_id),
    taskQueue: environmentQueue(webhookQueue, livemode),
    args: [input],
    priority: getShare(event),
    ...webhookLabels(event),
  };
}
