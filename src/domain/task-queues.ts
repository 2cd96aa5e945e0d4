/** Queue of the lifecycle workflows and their MongoDB activities. */
export const LIFECYCLE_QUEUE = 'lifecycle';
/** Separate queue, because a slow receiver must not starve payments. */
export const WEBHOOK_QUEUE = 'webhooks';

export const ENVIRONMENTS = ['sandbox', 'live'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** Each environment has its queue, so sandbox never uses live's slots. Sandbox has no suffix. */
export function environmentQueue(queue: string, livemode: boolean): string {
  return livemode ? `${queue}-live` : queue;
}

/** Queue names of one installation, without the environment. @see environmentQueue */
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

/** Each connector polls its own queue. */
export function connectorQueue(connector: string, prefix = ''): string {
  return addPrefix(prefix, `connector-${connector}`);
}

/** Extracts the installation's prefix from the name of its lifecycle queue. */
export function readPrefix(lifecycleQueue: string): string {
  return /^(.+)-lifecycle(?:-live)?$/.exec(lifecycleQueue)?.[1] ?? '';
}

export const TASK_QUEUE_PREFIX = /^[\w-]{0,64}$/;

function addPrefix(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}-${name}`;
}
