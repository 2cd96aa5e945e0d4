import { createPaymentActivities, type PaymentActivityDeps } from './payments';
import { createPayoutActivities } from './payouts';
import { createRefundActivities } from './refunds';
import { createWebhookActivities, type WebhookActivityDeps } from './webhooks';

/** Activities of the queue `lifecycle`. */
export function createLifecycleActivities(deps: PaymentActivityDeps) {
  return {
    ...createPaymentActivities(deps),
    ...createRefundActivities(deps),
    ...createPayoutActivities(deps),
  };
}

export type LifecycleActivities = ReturnType<typeof createLifecycleActivities>;

/** Activities of the queue `webhooks`. */
export function createDeliveryActivities(deps: WebhookActivityDeps) {
  return { ...createWebhookActivities(deps) };
}
