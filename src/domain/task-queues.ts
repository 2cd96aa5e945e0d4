export const LIFECYCLE_QUEUE = 'lifecycle';
/** Separate, because a slow receiver must not starve payments. */
export const WEBHOOK_QUEUE = 'webhooks';

/** Sandbox must never use live's slots; it has no suffix. */
export function environmentQueue(queue: string, livemode: boolean): string {
  return livemode ? `${queue}-live` : queue;
}

export function listLifecycleQueues(lifecycleQueue: string): string[] {
  return [false, true].map((livemode) => environmentQueue(lifecycleQueue, livemode));
}

/** Query of Temporal's list for the workflows of one type of this installation. */
export function buildWorkflowQuery(workflowType: string, lifecycleQueue: string): string {
  const queues = listLifecycleQueues(lifecycleQueue);
  return `WorkflowType = '${workflowType}' AND TaskQueue IN ('${queues.join(`', '`)}')`;
}

export interface TaskQueues {
  lifecycleQueue: string;
  webhookQueue: string;
}

/** The prefix separates installations that share a namespace. */
export function taskQueues(prefix: string): TaskQueues {
  return {
    lifecycleQueue: addPrefix(prefix, LIFECYCLE_QUEUE),
    webhookQueue: addPrefix(prefix, WEBHOOK_QUEUE),
  };
}

export function connectorQueue(connector: string, prefix = ''): string {
  return addPrefix(prefix, `connector-${connector}`);
}

/** Separate, so that instructions never hold the slots of questions that operators wait for. */
export function questionQueue(connector: string, prefix = ''): string {
  return addPrefix(prefix, `questions-${connector}`);
}

/** Takes the next turn at the bank, before all instructions that wait. */
export const QUESTION_PRIORITY = { priorityKey: 1 } as const;

export function readPrefix(lifecycleQueue: string): string {
  return /^(.+)-lifecycle(?:-live)?$/.exec(lifecycleQueue)?.[1] ?? '';
}

export const TASK_QUEUE_PREFIX = /^[\w-]{0,64}$/;

function addPrefix(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}-${name}`;
}
