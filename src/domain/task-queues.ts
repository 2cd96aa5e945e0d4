/** Lifecycles and their MongoDB steps. */
export const LIFECYCLE_QUEUE = 'lifecycle';
/** Deliveries have their own: a slow receiver must not starve payments. */
export const WEBHOOK_QUEUE = 'webhooks';

/** Each bank connector polls its own queue. */
export function connectorQueue(connector: string): string {
  return `connector-${connector}`;
}
