/** Queue of the lifecycles and their MongoDB steps. */
export const LIFECYCLE_QUEUE = 'lifecycle';
/** Queue of the deliveries, kept apart since a slow receiver must not starve payments. */
export const WEBHOOK_QUEUE = 'webhooks';

/** Queue of a bank connector; each connector polls its own. */
export function connectorQueue(connector: string): string {
  return `connector-${connector}`;
}
