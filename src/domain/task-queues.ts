/** Queue of the lifecycles and their MongoDB steps. */
export const LIFECYCLE_QUEUE = 'lifecycle';
/** Queue of the deliveries, kept apart since a slow receiver must not starve payments. */
export const WEBHOOK_QUEUE = 'webhooks';

/**
 * Queue of one environment, so that the sandbox never takes live's slots. Sandbox has the bare name,
 * on which live workflows of earlier versions go on, too.
 */
export function environmentQueue(queue: string, livemode: boolean): string {
  return livemode ? `${queue}-live` : queue;
}

/** Queue of a bank connector; each connector polls its own. */
export function connectorQueue(connector: string): string {
  return `connector-${connector}`;
}
