/** Queue of the lifecycles and their MongoDB steps. */
export const LIFECYCLE_QUEUE = 'lifecycle';
/** Queue of the deliveries, kept apart since a slow receiver must not starve payments. */
export const WEBHOOK_QUEUE = 'webhooks';

export const ENVIRONMENTS = ['sandbox', 'live'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/**
 * Queue of one environment, so that the sandbox never takes live's slots. Sandbox has the bare name,
 * on which live workflows of earlier versions go on, too.
 */
export function environmentQueue(queue: string, livemode: boolean): string {
  return livemode ? `${queue}-live` : queue;
}

/** Names of one installation's queues, which sandbox has bare. @see environmentQueue */
export interface TaskQueues {
  lifecycleQueue: string;
  webhookQueue: string;
}

/** Queues behind the prefix that tells this installation from others of its namespace. */
export function taskQueues(prefix: string): TaskQueues {
  return {
    lifecycleQueue: prefixed(prefix, LIFECYCLE_QUEUE),
    webhookQueue: prefixed(prefix, WEBHOOK_QUEUE),
  };
}

/** Queue of a bank connector; each connector polls its own. */
export function connectorQueue(connector: string, prefix = ''): string {
  return prefixed(prefix, `connector-${connector}`);
}

/** Prefix of the installation whose lifecycle queue this is. */
export function prefixOf(lifecycleQueue: string): string {
  return /^(.+)-lifecycle(?:-live)?$/.exec(lifecycleQueue)?.[1] ?? '';
}

/** Form of a prefix. */
export const TASK_QUEUE_PREFIX = /^[\w-]{0,64}$/;

function prefixed(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}-${name}`;
}
